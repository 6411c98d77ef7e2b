-- store.aggregates._BY_SPELLING
SELECT placement_aggregates.uuid, placement_aggregates.id
FROM placement_aggregates
WHERE placement_aggregates.uuid IN (__[POSTCOMPILE_spellings])

-- store.aggregates._LEAVE
DELETE FROM resource_provider_aggregates WHERE resource_provider_aggregates.resource_provider_id = ?

-- store.aggregates._LEAVE_OTHERS
DELETE FROM resource_provider_aggregates WHERE resource_provider_aggregates.resource_provider_id = ? AND (resource_provider_aggregates.aggregate_id NOT IN (__[POSTCOMPILE_aggregates]))

-- store.aggregates._PROVIDER_AND_AGGREGATES
SELECT 1, resource_providers.uuid AS common_text_1, resource_providers.id, resource_providers.generation
FROM resource_providers
WHERE resource_providers.uuid = ? UNION ALL SELECT 0, placement_aggregates.uuid AS common_text_2, placement_aggregates.id, NULL AS anon_1
FROM placement_aggregates
WHERE placement_aggregates.uuid IN (__[POSTCOMPILE_spellings])

-- store.aggregates._RESPELL
UPDATE placement_aggregates SET updated_at=?, uuid=? WHERE placement_aggregates.id = ? AND placement_aggregates.uuid = ?

-- store.aggregates._SPELL
UPDATE placement_aggregates SET uuid=? WHERE placement_aggregates.uuid = ?

-- store.allocations._OF_CONSUMER
SELECT resource_providers.uuid, coalesce(resource_providers.generation, ?) AS coalesce_1, resource_classes.name, allocations.used, allocations.created_at, projects.external_id, users.external_id AS external_id_1, consumers.generation, consumer_types.name AS name_1
FROM allocations JOIN resource_providers ON resource_providers.id = allocations.resource_provider_id JOIN resource_classes ON resource_classes.id = allocations.resource_class_id JOIN consumers ON consumers.uuid = allocations.consumer_id JOIN projects ON projects.id = consumers.project_id JOIN users ON users.id = consumers.user_id LEFT OUTER JOIN consumer_types ON consumer_types.id = consumers.consumer_type_id
WHERE allocations.consumer_id = ? ORDER BY allocations.id

-- store.allocations._OF_CONSUMERS
SELECT allocations.resource_provider_id, allocations.resource_class_id, allocations.used
FROM allocations
WHERE allocations.consumer_id IN (__[POSTCOMPILE_consumers])

-- store.allocations._OF_PROVIDER
SELECT consumers.uuid, consumers.generation, resource_classes.name, allocations.used, allocations.created_at, resource_providers.uuid AS uuid_1, coalesce(resource_providers.generation, ?) AS coalesce_1
FROM resource_providers LEFT OUTER JOIN allocations ON allocations.resource_provider_id = resource_providers.id LEFT OUTER JOIN resource_classes ON resource_classes.id = allocations.resource_class_id LEFT OUTER JOIN consumers ON consumers.uuid = allocations.consumer_id
WHERE resource_providers.uuid = ? ORDER BY allocations.id

-- store.allocations._OF_PROVIDERS
SELECT allocations.resource_provider_id, allocations.consumer_id, allocations.resource_class_id, allocations.used
FROM allocations
WHERE allocations.resource_provider_id IN (__[POSTCOMPILE_providers])

-- store.changes._COUNTED
SELECT berth_journal.provider_id, count(*) AS count_1, min(CAST(berth_journal.usage_only AS INTEGER)) AS min_1, max(berth_journal.gone_uuid) AS max_1
FROM berth_journal
WHERE berth_journal.writer_id = ? AND berth_journal.seq > ? AND berth_journal.seq <= ? GROUP BY berth_journal.provider_id

-- store.changes._DELETIONS
SELECT berth_journal.provider_id, berth_journal.gone_uuid
FROM berth_journal
WHERE berth_journal.writer_id = ? AND berth_journal.seq > ? AND berth_journal.provider_id IN (__[POSTCOMPILE_providers]) AND berth_journal.gone_uuid IS NOT NULL

-- store.changes._ONE_BY_ONE
SELECT berth_journal.provider_id, berth_journal.created_at, berth_journal.seq, berth_journal.gone_uuid
FROM berth_journal
WHERE berth_journal.writer_id = ? AND berth_journal.seq > ? AND berth_journal.seq <= ? AND berth_journal.provider_id IN (__[POSTCOMPILE_providers])

-- store.changes._TRIMMED
SELECT berth_writer.id, berth_writer.trimmed_seq
FROM berth_writer

-- store.claim_reads._FACTS
SELECT 1, consumers.uuid AS common_text_1, consumers.id, consumers.generation, consumers.consumer_type_id, consumers.project_id, consumers.user_id, (SELECT berth_consumer_names.id
FROM berth_consumer_names
WHERE berth_consumer_names.consumer_uuid = consumers.uuid) AS anon_1, (SELECT CASE WHEN (berth_leases.consumer_uuid = consumers.uuid AND berth_leases.consumer_id = consumers.id AND berth_leases.consumer_created_at IS consumers.created_at AND berth_leases.consumer_generation = consumers.generation) THEN 1 ELSE 0 END AS anon_3
FROM berth_leases
WHERE berth_leases.consumer_uuid = consumers.uuid) AS anon_2
FROM consumers
WHERE consumers.uuid IN (__[POSTCOMPILE_consumers]) UNION ALL SELECT 2, allocations.consumer_id AS common_text_2, allocations.resource_provider_id, (SELECT resource_providers.generation
FROM resource_providers
WHERE resource_providers.id = allocations.resource_provider_id) AS anon_4, (SELECT max(berth_usages.generation) AS max_1
FROM berth_usages
WHERE berth_usages.resource_provider_id = allocations.resource_provider_id) AS anon_5, allocations.resource_class_id, allocations.used, NULL AS anon_6, NULL AS anon__1
FROM allocations
WHERE allocations.consumer_id IN (__[POSTCOMPILE_consumers]) UNION ALL SELECT 0, resource_providers.uuid AS common_text_3, resource_providers.id, resource_providers.generation, (SELECT max(berth_usages.generation) AS max_2
FROM berth_usages
WHERE berth_usages.resource_provider_id = resource_providers.id) AS anon_7, NULL AS anon_6, NULL AS anon__1, NULL AS anon__2, NULL AS anon__3
FROM resource_providers
WHERE resource_providers.uuid IN (__[POSTCOMPILE_providers]) UNION ALL SELECT 3, projects.external_id AS common_text_4, projects.id, NULL AS anon_6, NULL AS anon__1, NULL AS anon__2, NULL AS anon__3, NULL AS anon__4, NULL AS anon__5
FROM projects
WHERE projects.external_id IN (__[POSTCOMPILE_projects]) UNION ALL SELECT 4, users.external_id AS common_text_5, users.id, NULL AS anon_6, NULL AS anon__1, NULL AS anon__2, NULL AS anon__3, NULL AS anon__4, NULL AS anon__5
FROM users
WHERE users.external_id IN (__[POSTCOMPILE_users]) UNION ALL SELECT 5, consumer_types.name AS common_text_6, consumer_types.id, NULL AS anon_6, NULL AS anon__1, NULL AS anon__2, NULL AS anon__3, NULL AS anon__4, NULL AS anon__5
FROM consumer_types
WHERE consumer_types.name IN (__[POSTCOMPILE_types])

-- store.claim_reads._FACTS_WITH_CLASSES
SELECT 1, consumers.uuid AS common_text_1, consumers.id, consumers.generation, consumers.consumer_type_id, consumers.project_id, consumers.user_id, (SELECT berth_consumer_names.id
FROM berth_consumer_names
WHERE berth_consumer_names.consumer_uuid = consumers.uuid) AS anon_1, (SELECT CASE WHEN (berth_leases.consumer_uuid = consumers.uuid AND berth_leases.consumer_id = consumers.id AND berth_leases.consumer_created_at IS consumers.created_at AND berth_leases.consumer_generation = consumers.generation) THEN 1 ELSE 0 END AS anon_3
FROM berth_leases
WHERE berth_leases.consumer_uuid = consumers.uuid) AS anon_2
FROM consumers
WHERE consumers.uuid IN (__[POSTCOMPILE_consumers]) UNION ALL SELECT 2, allocations.consumer_id AS common_text_2, allocations.resource_provider_id, (SELECT resource_providers.generation
FROM resource_providers
WHERE resource_providers.id = allocations.resource_provider_id) AS anon_4, (SELECT max(berth_usages.generation) AS max_1
FROM berth_usages
WHERE berth_usages.resource_provider_id = allocations.resource_provider_id) AS anon_5, allocations.resource_class_id, allocations.used, NULL AS anon_6, NULL AS anon__1
FROM allocations
WHERE allocations.consumer_id IN (__[POSTCOMPILE_consumers]) UNION ALL SELECT 0, resource_providers.uuid AS common_text_3, resource_providers.id, resource_providers.generation, (SELECT max(berth_usages.generation) AS max_2
FROM berth_usages
WHERE berth_usages.resource_provider_id = resource_providers.id) AS anon_7, NULL AS anon_6, NULL AS anon__1, NULL AS anon__2, NULL AS anon__3
FROM resource_providers
WHERE resource_providers.uuid IN (__[POSTCOMPILE_providers]) UNION ALL SELECT 3, projects.external_id AS common_text_4, projects.id, NULL AS anon_6, NULL AS anon__1, NULL AS anon__2, NULL AS anon__3, NULL AS anon__4, NULL AS anon__5
FROM projects
WHERE projects.external_id IN (__[POSTCOMPILE_projects]) UNION ALL SELECT 4, users.external_id AS common_text_5, users.id, NULL AS anon_6, NULL AS anon__1, NULL AS anon__2, NULL AS anon__3, NULL AS anon__4, NULL AS anon__5
FROM users
WHERE users.external_id IN (__[POSTCOMPILE_users]) UNION ALL SELECT 5, consumer_types.name AS common_text_6, consumer_types.id, NULL AS anon_6, NULL AS anon__1, NULL AS anon__2, NULL AS anon__3, NULL AS anon__4, NULL AS anon__5
FROM consumer_types
WHERE consumer_types.name IN (__[POSTCOMPILE_types]) UNION ALL SELECT 6, resource_classes.name AS common_text_7, resource_classes.id, NULL AS anon_6, NULL AS anon__1, NULL AS anon__2, NULL AS anon__3, NULL AS anon__4, NULL AS anon__5
FROM resource_classes
WHERE resource_classes.name IN (__[POSTCOMPILE_classes])

-- store.claim_reads._FACTS_WITH_HOLDERS
SELECT 1, consumers.uuid AS common_text_1, consumers.id, consumers.generation, consumers.consumer_type_id, consumers.project_id, consumers.user_id, (SELECT berth_consumer_names.id
FROM berth_consumer_names
WHERE berth_consumer_names.consumer_uuid = consumers.uuid) AS anon_1, (SELECT CASE WHEN (berth_leases.consumer_uuid = consumers.uuid AND berth_leases.consumer_id = consumers.id AND berth_leases.consumer_created_at IS consumers.created_at AND berth_leases.consumer_generation = consumers.generation) THEN 1 ELSE 0 END AS anon_3
FROM berth_leases
WHERE berth_leases.consumer_uuid = consumers.uuid) AS anon_2
FROM consumers
WHERE consumers.uuid IN (__[POSTCOMPILE_consumers]) UNION ALL SELECT 2, allocations.consumer_id AS common_text_2, allocations.resource_provider_id, (SELECT resource_providers.generation
FROM resource_providers
WHERE resource_providers.id = allocations.resource_provider_id) AS anon_4, (SELECT max(berth_usages.generation) AS max_1
FROM berth_usages
WHERE berth_usages.resource_provider_id = allocations.resource_provider_id) AS anon_5, allocations.resource_class_id, allocations.used, NULL AS anon_6, NULL AS anon__1
FROM allocations
WHERE allocations.consumer_id IN (__[POSTCOMPILE_consumers]) UNION ALL SELECT 0, resource_providers.uuid AS common_text_3, resource_providers.id, resource_providers.generation, (SELECT max(berth_usages.generation) AS max_2
FROM berth_usages
WHERE berth_usages.resource_provider_id = resource_providers.id) AS anon_7, NULL AS anon_6, NULL AS anon__1, NULL AS anon__2, NULL AS anon__3
FROM resource_providers
WHERE resource_providers.uuid IN (__[POSTCOMPILE_providers]) UNION ALL SELECT 3, projects.external_id AS common_text_4, projects.id, NULL AS anon_6, NULL AS anon__1, NULL AS anon__2, NULL AS anon__3, NULL AS anon__4, NULL AS anon__5
FROM projects
WHERE projects.external_id IN (__[POSTCOMPILE_projects]) UNION ALL SELECT 4, users.external_id AS common_text_5, users.id, NULL AS anon_6, NULL AS anon__1, NULL AS anon__2, NULL AS anon__3, NULL AS anon__4, NULL AS anon__5
FROM users
WHERE users.external_id IN (__[POSTCOMPILE_users]) UNION ALL SELECT 5, consumer_types.name AS common_text_6, consumer_types.id, NULL AS anon_6, NULL AS anon__1, NULL AS anon__2, NULL AS anon__3, NULL AS anon__4, NULL AS anon__5
FROM consumer_types
WHERE consumer_types.name IN (__[POSTCOMPILE_types]) UNION ALL SELECT 6, resource_classes.name AS common_text_7, resource_classes.id, NULL AS anon_6, NULL AS anon__1, NULL AS anon__2, NULL AS anon__3, NULL AS anon__4, NULL AS anon__5
FROM resource_classes
WHERE resource_classes.name IN (__[POSTCOMPILE_classes]) UNION ALL SELECT 3, projects.external_id AS common_text_8, projects.id, NULL AS anon_6, NULL AS anon__1, NULL AS anon__2, NULL AS anon__3, NULL AS anon__4, NULL AS anon__5
FROM projects
WHERE projects.id IN (SELECT consumers.project_id
FROM consumers
WHERE consumers.uuid IN (__[POSTCOMPILE_consumers])) UNION ALL SELECT 4, users.external_id AS common_text_9, users.id, NULL AS anon_6, NULL AS anon__1, NULL AS anon__2, NULL AS anon__3, NULL AS anon__4, NULL AS anon__5
FROM users
WHERE users.id IN (SELECT consumers.user_id
FROM consumers
WHERE consumers.uuid IN (__[POSTCOMPILE_consumers])) UNION ALL SELECT 7, berth_consumer_names.name AS common_text_10, berth_consumer_names.id, NULL AS anon_6, NULL AS anon__1, NULL AS anon__2, NULL AS anon__3, NULL AS anon__4, NULL AS anon__5
FROM berth_consumer_names
WHERE berth_consumer_names.consumer_uuid IN (__[POSTCOMPILE_consumers])

-- store.claim_reads._RELEASE_FACTS
SELECT 1, consumers.uuid AS common_text_1, consumers.id, consumers.generation, consumers.consumer_type_id, consumers.project_id, consumers.user_id, (SELECT berth_consumer_names.id
FROM berth_consumer_names
WHERE berth_consumer_names.consumer_uuid = consumers.uuid) AS anon_1, (SELECT CASE WHEN (berth_leases.consumer_uuid = consumers.uuid AND berth_leases.consumer_id = consumers.id AND berth_leases.consumer_created_at IS consumers.created_at AND berth_leases.consumer_generation = consumers.generation) THEN 1 ELSE 0 END AS anon_3
FROM berth_leases
WHERE berth_leases.consumer_uuid = consumers.uuid) AS anon_2
FROM consumers
WHERE consumers.uuid IN (__[POSTCOMPILE_consumers]) UNION ALL SELECT 2, allocations.consumer_id AS common_text_2, allocations.resource_provider_id, (SELECT resource_providers.generation
FROM resource_providers
WHERE resource_providers.id = allocations.resource_provider_id) AS anon_4, (SELECT max(berth_usages.generation) AS max_1
FROM berth_usages
WHERE berth_usages.resource_provider_id = allocations.resource_provider_id) AS anon_5, allocations.resource_class_id, allocations.used, NULL AS anon_6, NULL AS anon__1
FROM allocations
WHERE allocations.consumer_id IN (__[POSTCOMPILE_consumers])

-- store.claim_reads._RELEASE_FACTS_WITH_HOLDERS
SELECT 1, consumers.uuid AS common_text_1, consumers.id, consumers.generation, consumers.consumer_type_id, consumers.project_id, consumers.user_id, (SELECT berth_consumer_names.id
FROM berth_consumer_names
WHERE berth_consumer_names.consumer_uuid = consumers.uuid) AS anon_1, (SELECT CASE WHEN (berth_leases.consumer_uuid = consumers.uuid AND berth_leases.consumer_id = consumers.id AND berth_leases.consumer_created_at IS consumers.created_at AND berth_leases.consumer_generation = consumers.generation) THEN 1 ELSE 0 END AS anon_3
FROM berth_leases
WHERE berth_leases.consumer_uuid = consumers.uuid) AS anon_2
FROM consumers
WHERE consumers.uuid IN (__[POSTCOMPILE_consumers]) UNION ALL SELECT 2, allocations.consumer_id AS common_text_2, allocations.resource_provider_id, (SELECT resource_providers.generation
FROM resource_providers
WHERE resource_providers.id = allocations.resource_provider_id) AS anon_4, (SELECT max(berth_usages.generation) AS max_1
FROM berth_usages
WHERE berth_usages.resource_provider_id = allocations.resource_provider_id) AS anon_5, allocations.resource_class_id, allocations.used, NULL AS anon_6, NULL AS anon__1
FROM allocations
WHERE allocations.consumer_id IN (__[POSTCOMPILE_consumers]) UNION ALL SELECT 3, projects.external_id AS common_text_3, projects.id, NULL AS anon_6, NULL AS anon__1, NULL AS anon__2, NULL AS anon__3, NULL AS anon__4, NULL AS anon__5
FROM projects
WHERE projects.id IN (SELECT consumers.project_id
FROM consumers
WHERE consumers.uuid IN (__[POSTCOMPILE_consumers])) UNION ALL SELECT 4, users.external_id AS common_text_4, users.id, NULL AS anon_6, NULL AS anon__1, NULL AS anon__2, NULL AS anon__3, NULL AS anon__4, NULL AS anon__5
FROM users
WHERE users.id IN (SELECT consumers.user_id
FROM consumers
WHERE consumers.uuid IN (__[POSTCOMPILE_consumers])) UNION ALL SELECT 7, berth_consumer_names.name AS common_text_5, berth_consumer_names.id, NULL AS anon_6, NULL AS anon__1, NULL AS anon__2, NULL AS anon__3, NULL AS anon__4, NULL AS anon__5
FROM berth_consumer_names
WHERE berth_consumer_names.consumer_uuid IN (__[POSTCOMPILE_consumers])

-- store.claim_reads._ROOMS
SELECT inventories.resource_provider_id, inventories.resource_class_id, berth_usages.used, berth_usages.generation, resource_providers.generation AS generation_1, inventories.total, inventories.reserved, inventories.min_unit, inventories.max_unit, inventories.step_size, inventories.allocation_ratio
FROM inventories JOIN berth_usages ON berth_usages.resource_provider_id = inventories.resource_provider_id AND berth_usages.resource_class_id = inventories.resource_class_id JOIN resource_providers ON resource_providers.id = inventories.resource_provider_id
WHERE inventories.resource_provider_id IN (__[POSTCOMPILE_providers])

-- store.claim_reads._named_by_claim[0]
SELECT 0, resource_providers.uuid AS common_text_1, resource_providers.id, resource_providers.generation, (SELECT max(berth_usages.generation) AS max_1
FROM berth_usages
WHERE berth_usages.resource_provider_id = resource_providers.id) AS anon_1, NULL AS anon_2, NULL AS anon__1, NULL AS anon__2, NULL AS anon__3
FROM resource_providers
WHERE resource_providers.uuid IN (__[POSTCOMPILE_providers])

-- store.claim_reads._named_by_claim[1]
SELECT 3, projects.external_id AS common_text_1, projects.id, NULL AS anon_1, NULL AS anon__1, NULL AS anon__2, NULL AS anon__3, NULL AS anon__4, NULL AS anon__5
FROM projects
WHERE projects.external_id IN (__[POSTCOMPILE_projects])

-- store.claim_reads._named_by_claim[2]
SELECT 4, users.external_id AS common_text_1, users.id, NULL AS anon_1, NULL AS anon__1, NULL AS anon__2, NULL AS anon__3, NULL AS anon__4, NULL AS anon__5
FROM users
WHERE users.external_id IN (__[POSTCOMPILE_users])

-- store.claim_reads._named_by_claim[3]
SELECT 5, consumer_types.name AS common_text_1, consumer_types.id, NULL AS anon_1, NULL AS anon__1, NULL AS anon__2, NULL AS anon__3, NULL AS anon__4, NULL AS anon__5
FROM consumer_types
WHERE consumer_types.name IN (__[POSTCOMPILE_types])

-- store.claim_reads._named_classes_of_claim
SELECT 6, resource_classes.name AS common_text_1, resource_classes.id, NULL AS anon_1, NULL AS anon__1, NULL AS anon__2, NULL AS anon__3, NULL AS anon__4, NULL AS anon__5
FROM resource_classes
WHERE resource_classes.name IN (__[POSTCOMPILE_classes])

-- store.claim_reads._of_consumers[0]
SELECT 1, consumers.uuid AS common_text_1, consumers.id, consumers.generation, consumers.consumer_type_id, consumers.project_id, consumers.user_id, (SELECT berth_consumer_names.id
FROM berth_consumer_names
WHERE berth_consumer_names.consumer_uuid = consumers.uuid) AS anon_1, (SELECT CASE WHEN (berth_leases.consumer_uuid = consumers.uuid AND berth_leases.consumer_id = consumers.id AND berth_leases.consumer_created_at IS consumers.created_at AND berth_leases.consumer_generation = consumers.generation) THEN 1 ELSE 0 END AS anon_3
FROM berth_leases
WHERE berth_leases.consumer_uuid = consumers.uuid) AS anon_2
FROM consumers
WHERE consumers.uuid IN (__[POSTCOMPILE_consumers])

-- store.claim_reads._of_consumers[1]
SELECT 2, allocations.consumer_id AS common_text_1, allocations.resource_provider_id, (SELECT resource_providers.generation
FROM resource_providers
WHERE resource_providers.id = allocations.resource_provider_id) AS anon_1, (SELECT max(berth_usages.generation) AS max_1
FROM berth_usages
WHERE berth_usages.resource_provider_id = allocations.resource_provider_id) AS anon_2, allocations.resource_class_id, allocations.used, NULL AS anon_3, NULL AS anon__1
FROM allocations
WHERE allocations.consumer_id IN (__[POSTCOMPILE_consumers])

-- store.claim_reads._of_holders[0]
SELECT 3, projects.external_id AS common_text_1, projects.id, NULL AS anon_1, NULL AS anon__1, NULL AS anon__2, NULL AS anon__3, NULL AS anon__4, NULL AS anon__5
FROM projects
WHERE projects.id IN (SELECT consumers.project_id
FROM consumers
WHERE consumers.uuid IN (__[POSTCOMPILE_consumers]))

-- store.claim_reads._of_holders[1]
SELECT 4, users.external_id AS common_text_1, users.id, NULL AS anon_1, NULL AS anon__1, NULL AS anon__2, NULL AS anon__3, NULL AS anon__4, NULL AS anon__5
FROM users
WHERE users.id IN (SELECT consumers.user_id
FROM consumers
WHERE consumers.uuid IN (__[POSTCOMPILE_consumers]))

-- store.claim_reads._of_holders[2]
SELECT 7, berth_consumer_names.name AS common_text_1, berth_consumer_names.id, NULL AS anon_1, NULL AS anon__1, NULL AS anon__2, NULL AS anon__3, NULL AS anon__4, NULL AS anon__5
FROM berth_consumer_names
WHERE berth_consumer_names.consumer_uuid IN (__[POSTCOMPILE_consumers])

-- store.claims._CHANGE_USAGE
UPDATE berth_usages SET used=(berth_usages.used + ?), generation=coalesce(?, berth_usages.generation) WHERE berth_usages.resource_provider_id = ? AND berth_usages.resource_class_id = ? AND (? IS NULL OR (SELECT resource_providers.generation
FROM resource_providers
WHERE resource_providers.id = berth_usages.resource_provider_id) = ?) AND (? <= 0 OR (SELECT ? <= 0 OR berth_usages.used + ? <= (inventories.total - inventories.reserved) * inventories.allocation_ratio AS anon_1
FROM inventories
WHERE inventories.resource_provider_id = berth_usages.resource_provider_id AND inventories.resource_class_id = berth_usages.resource_class_id))

-- store.claims._CLAIM_USAGE
UPDATE berth_usages SET used=(berth_usages.used + ?), generation=? WHERE berth_usages.resource_provider_id = ? AND berth_usages.resource_class_id = ? AND (SELECT resource_providers.generation
FROM resource_providers
WHERE resource_providers.id = berth_usages.resource_provider_id) = ? AND (SELECT ? <= 0 OR berth_usages.used + ? <= (inventories.total - inventories.reserved) * inventories.allocation_ratio AS anon_1
FROM inventories
WHERE inventories.resource_provider_id = berth_usages.resource_provider_id AND inventories.resource_class_id = berth_usages.resource_class_id AND ? >= inventories.min_unit AND ? <= inventories.max_unit AND ? % nullif(inventories.step_size, 0) = 0)

-- store.claims._INSERT
INSERT INTO allocations (created_at, resource_provider_id, consumer_id, resource_class_id, used) VALUES (?, ?, ?, ?, ?)

-- store.claims._RELEASE
DELETE FROM allocations WHERE allocations.consumer_id IN (__[POSTCOMPILE_consumers])

-- store.claims._RELEASE_USAGE
UPDATE berth_usages SET used=(berth_usages.used + ?) WHERE berth_usages.resource_provider_id = ? AND berth_usages.resource_class_id = ?

-- store.claims._has_room
SELECT ? <= 0 OR berth_usages.used + ? <= (inventories.total - inventories.reserved) * inventories.allocation_ratio AS anon_1
FROM berth_usages, inventories
WHERE inventories.resource_provider_id = berth_usages.resource_provider_id AND inventories.resource_class_id = berth_usages.resource_class_id

-- store.confined._HOLDING
SELECT allocations.resource_provider_id
FROM allocations
WHERE allocations.consumer_id = ?

-- store.confined._HOST
SELECT resource_providers.id, resource_providers.uuid, resource_providers.name, resource_providers.root_provider_id
FROM resource_providers
WHERE resource_providers.uuid = ? OR resource_providers.name = ?

-- store.confined._MEMBERSHIPS
SELECT DISTINCT placement_aggregates.id, placement_aggregates.uuid
FROM placement_aggregates JOIN resource_provider_aggregates ON resource_provider_aggregates.aggregate_id = placement_aggregates.id JOIN resource_providers ON resource_providers.id = resource_provider_aggregates.resource_provider_id
WHERE resource_providers.root_provider_id = ?

-- store.confined._PLACES
SELECT resource_providers.id, resource_providers.name, root.name AS name_1
FROM resource_providers LEFT OUTER JOIN resource_providers AS root ON root.id = resource_providers.root_provider_id
WHERE resource_providers.id IN (__[POSTCOMPILE_providers]) ORDER BY resource_providers.id

-- store.confined._SHARING
SELECT resource_provider_aggregates.aggregate_id, resource_providers.id, resource_providers.name
FROM resource_provider_aggregates JOIN resource_providers ON resource_providers.id = resource_provider_aggregates.resource_provider_id JOIN resource_provider_traits ON resource_provider_traits.resource_provider_id = resource_providers.id JOIN traits ON traits.id = resource_provider_traits.trait_id
WHERE traits.name = ? AND resource_provider_aggregates.aggregate_id IN (__[POSTCOMPILE_aggregates]) ORDER BY resource_providers.id

-- store.consumer_lists._ALLOCATIONS
SELECT allocations.consumer_id, resource_providers.uuid, resource_providers.name, resource_classes.name AS name_1, allocations.used
FROM allocations JOIN resource_providers ON resource_providers.id = allocations.resource_provider_id JOIN resource_classes ON resource_classes.id = allocations.resource_class_id
WHERE allocations.consumer_id IN (__[POSTCOMPILE_consumers]) ORDER BY allocations.id

-- store.consumer_lists._BY_UUID
SELECT consumers.uuid, berth_consumer_names.name, projects.external_id, users.external_id AS external_id_1, consumer_types.name AS name_1, consumers.generation, consumers.created_at, berth_leases.expires_at
FROM consumers JOIN projects ON projects.id = consumers.project_id JOIN users ON users.id = consumers.user_id LEFT OUTER JOIN consumer_types ON consumer_types.id = consumers.consumer_type_id LEFT OUTER JOIN berth_consumer_names ON berth_consumer_names.consumer_uuid = consumers.uuid LEFT OUTER JOIN berth_leases ON berth_leases.consumer_uuid = consumers.uuid AND berth_leases.consumer_id = consumers.id AND berth_leases.consumer_created_at IS consumers.created_at AND berth_leases.consumer_generation = consumers.generation
WHERE consumers.uuid = ?

-- store.consumer_lists._NEXT
SELECT consumers.uuid, berth_consumer_names.name, projects.external_id, users.external_id AS external_id_1, consumer_types.name AS name_1, consumers.generation, consumers.created_at, berth_leases.expires_at
FROM consumers JOIN projects ON projects.id = consumers.project_id JOIN users ON users.id = consumers.user_id LEFT OUTER JOIN consumer_types ON consumer_types.id = consumers.consumer_type_id LEFT OUTER JOIN berth_consumer_names ON berth_consumer_names.consumer_uuid = consumers.uuid LEFT OUTER JOIN berth_leases ON berth_leases.consumer_uuid = consumers.uuid AND berth_leases.consumer_id = consumers.id AND berth_leases.consumer_created_at IS consumers.created_at AND berth_leases.consumer_generation = consumers.generation
WHERE consumers.uuid > ? ORDER BY consumers.uuid
 LIMIT ? OFFSET ?

-- store.consumer_lists._OF_NAME
SELECT consumers.uuid, berth_consumer_names.name, projects.external_id, users.external_id AS external_id_1, consumer_types.name AS name_1, consumers.generation, consumers.created_at, berth_leases.expires_at
FROM consumers JOIN projects ON projects.id = consumers.project_id JOIN users ON users.id = consumers.user_id LEFT OUTER JOIN consumer_types ON consumer_types.id = consumers.consumer_type_id LEFT OUTER JOIN berth_consumer_names ON berth_consumer_names.consumer_uuid = consumers.uuid LEFT OUTER JOIN berth_leases ON berth_leases.consumer_uuid = consumers.uuid AND berth_leases.consumer_id = consumers.id AND berth_leases.consumer_created_at IS consumers.created_at AND berth_leases.consumer_generation = consumers.generation
WHERE consumers.uuid > ? AND berth_consumer_names.name = ? ORDER BY consumers.uuid
 LIMIT ? OFFSET ?

-- store.consumer_lists._OF_PROJECT
SELECT consumers.uuid, berth_consumer_names.name, projects.external_id, users.external_id AS external_id_1, consumer_types.name AS name_1, consumers.generation, consumers.created_at, berth_leases.expires_at
FROM consumers JOIN projects ON projects.id = consumers.project_id JOIN users ON users.id = consumers.user_id LEFT OUTER JOIN consumer_types ON consumer_types.id = consumers.consumer_type_id LEFT OUTER JOIN berth_consumer_names ON berth_consumer_names.consumer_uuid = consumers.uuid LEFT OUTER JOIN berth_leases ON berth_leases.consumer_uuid = consumers.uuid AND berth_leases.consumer_id = consumers.id AND berth_leases.consumer_created_at IS consumers.created_at AND berth_leases.consumer_generation = consumers.generation
WHERE consumers.uuid > ? AND projects.external_id = ? ORDER BY consumers.uuid
 LIMIT ? OFFSET ?

-- store.consumer_lists._OF_PROVIDER
SELECT consumers.uuid, berth_consumer_names.name, projects.external_id, users.external_id AS external_id_1, consumer_types.name AS name_1, consumers.generation, consumers.created_at, berth_leases.expires_at
FROM consumers JOIN projects ON projects.id = consumers.project_id JOIN users ON users.id = consumers.user_id LEFT OUTER JOIN consumer_types ON consumer_types.id = consumers.consumer_type_id LEFT OUTER JOIN berth_consumer_names ON berth_consumer_names.consumer_uuid = consumers.uuid LEFT OUTER JOIN berth_leases ON berth_leases.consumer_uuid = consumers.uuid AND berth_leases.consumer_id = consumers.id AND berth_leases.consumer_created_at IS consumers.created_at AND berth_leases.consumer_generation = consumers.generation
WHERE consumers.uuid > ? AND consumers.uuid IN (SELECT allocations.consumer_id
FROM allocations
WHERE allocations.resource_provider_id = ?) ORDER BY consumers.uuid
 LIMIT ? OFFSET ?

-- store.consumer_lists._OF_PROVIDER_AND_TREE
SELECT consumers.uuid, berth_consumer_names.name, projects.external_id, users.external_id AS external_id_1, consumer_types.name AS name_1, consumers.generation, consumers.created_at, berth_leases.expires_at
FROM consumers JOIN projects ON projects.id = consumers.project_id JOIN users ON users.id = consumers.user_id LEFT OUTER JOIN consumer_types ON consumer_types.id = consumers.consumer_type_id LEFT OUTER JOIN berth_consumer_names ON berth_consumer_names.consumer_uuid = consumers.uuid LEFT OUTER JOIN berth_leases ON berth_leases.consumer_uuid = consumers.uuid AND berth_leases.consumer_id = consumers.id AND berth_leases.consumer_created_at IS consumers.created_at AND berth_leases.consumer_generation = consumers.generation
WHERE consumers.uuid > ? AND consumers.uuid IN (SELECT allocations.consumer_id
FROM allocations
WHERE allocations.resource_provider_id = ?) AND consumers.uuid IN (SELECT allocations.consumer_id
FROM allocations JOIN resource_providers ON resource_providers.id = allocations.resource_provider_id
WHERE resource_providers.root_provider_id = ?) ORDER BY consumers.uuid
 LIMIT ? OFFSET ?

-- store.consumer_lists._OF_TREE
SELECT consumers.uuid, berth_consumer_names.name, projects.external_id, users.external_id AS external_id_1, consumer_types.name AS name_1, consumers.generation, consumers.created_at, berth_leases.expires_at
FROM consumers JOIN projects ON projects.id = consumers.project_id JOIN users ON users.id = consumers.user_id LEFT OUTER JOIN consumer_types ON consumer_types.id = consumers.consumer_type_id LEFT OUTER JOIN berth_consumer_names ON berth_consumer_names.consumer_uuid = consumers.uuid LEFT OUTER JOIN berth_leases ON berth_leases.consumer_uuid = consumers.uuid AND berth_leases.consumer_id = consumers.id AND berth_leases.consumer_created_at IS consumers.created_at AND berth_leases.consumer_generation = consumers.generation
WHERE consumers.uuid > ? AND consumers.uuid IN (SELECT allocations.consumer_id
FROM allocations JOIN resource_providers ON resource_providers.id = allocations.resource_provider_id
WHERE resource_providers.root_provider_id = ?) ORDER BY consumers.uuid
 LIMIT ? OFFSET ?

-- store.consumer_lists._RECORDS
SELECT consumers.uuid, berth_consumer_names.name, projects.external_id, users.external_id AS external_id_1, consumer_types.name AS name_1, consumers.generation, consumers.created_at, berth_leases.expires_at
FROM consumers JOIN projects ON projects.id = consumers.project_id JOIN users ON users.id = consumers.user_id LEFT OUTER JOIN consumer_types ON consumer_types.id = consumers.consumer_type_id LEFT OUTER JOIN berth_consumer_names ON berth_consumer_names.consumer_uuid = consumers.uuid LEFT OUTER JOIN berth_leases ON berth_leases.consumer_uuid = consumers.uuid AND berth_leases.consumer_id = consumers.id AND berth_leases.consumer_created_at IS consumers.created_at AND berth_leases.consumer_generation = consumers.generation

-- store.consumer_lists._SEARCHED
SELECT consumers.uuid, berth_consumer_names.name, projects.external_id, users.external_id AS external_id_1, consumer_types.name AS name_1, consumers.generation, consumers.created_at, berth_leases.expires_at
FROM consumers JOIN projects ON projects.id = consumers.project_id JOIN users ON users.id = consumers.user_id LEFT OUTER JOIN consumer_types ON consumer_types.id = consumers.consumer_type_id LEFT OUTER JOIN berth_consumer_names ON berth_consumer_names.consumer_uuid = consumers.uuid LEFT OUTER JOIN berth_leases ON berth_leases.consumer_uuid = consumers.uuid AND berth_leases.consumer_id = consumers.id AND berth_leases.consumer_created_at IS consumers.created_at AND berth_leases.consumer_generation = consumers.generation JOIN (SELECT consumers_1.uuid AS uuid
FROM consumers AS consumers_1 JOIN (SELECT consumers_1.uuid AS uuid
FROM consumers AS consumers_1
WHERE consumers_1.uuid BETWEEN ? AND ? UNION SELECT berth_consumer_names.consumer_uuid AS consumer_uuid
FROM berth_consumer_names
WHERE lower(berth_consumer_names.name) LIKE lower(?) ESCAPE '/') AS anon_2 ON anon_2.uuid = consumers_1.uuid
WHERE consumers_1.uuid > ? ORDER BY consumers_1.uuid
 LIMIT ? OFFSET ?) AS anon_1 ON anon_1.uuid = consumers.uuid
WHERE consumers.uuid > ? ORDER BY consumers.uuid
 LIMIT ? OFFSET ?

-- store.consumer_lists._SEARCHED_OF_PROJECT
SELECT consumers.uuid, berth_consumer_names.name, projects.external_id, users.external_id AS external_id_1, consumer_types.name AS name_1, consumers.generation, consumers.created_at, berth_leases.expires_at
FROM consumers JOIN projects ON projects.id = consumers.project_id JOIN users ON users.id = consumers.user_id LEFT OUTER JOIN consumer_types ON consumer_types.id = consumers.consumer_type_id LEFT OUTER JOIN berth_consumer_names ON berth_consumer_names.consumer_uuid = consumers.uuid LEFT OUTER JOIN berth_leases ON berth_leases.consumer_uuid = consumers.uuid AND berth_leases.consumer_id = consumers.id AND berth_leases.consumer_created_at IS consumers.created_at AND berth_leases.consumer_generation = consumers.generation JOIN (SELECT consumers_1.uuid AS uuid
FROM consumers AS consumers_1 JOIN (SELECT consumers_1.uuid AS uuid
FROM consumers AS consumers_1
WHERE consumers_1.uuid BETWEEN ? AND ? AND consumers_1.project_id IN (SELECT projects.id
FROM projects
WHERE projects.external_id = ?) UNION SELECT berth_consumer_names.consumer_uuid AS consumer_uuid
FROM berth_consumer_names
WHERE lower(berth_consumer_names.name) LIKE lower(?) ESCAPE '/' AND berth_consumer_names.project_id IN (SELECT projects.id
FROM projects
WHERE projects.external_id = ?)) AS anon_2 ON anon_2.uuid = consumers_1.uuid
WHERE consumers_1.uuid > ? ORDER BY consumers_1.uuid
 LIMIT ? OFFSET ?) AS anon_1 ON anon_1.uuid = consumers.uuid
WHERE consumers.uuid > ? ORDER BY consumers.uuid
 LIMIT ? OFFSET ?

-- store.consumers._BY_NAME
SELECT berth_consumer_names.consumer_uuid, berth_consumer_names.name, projects.external_id
FROM berth_consumer_names JOIN projects ON projects.id = berth_consumer_names.project_id JOIN consumers ON consumers.uuid = berth_consumer_names.consumer_uuid
WHERE projects.external_id = ? AND berth_consumer_names.name = ?

-- store.consumers._BY_UUID
SELECT consumers.id, consumers.uuid, consumers.generation, consumers.consumer_type_id, consumers.project_id, consumers.user_id, (SELECT berth_consumer_names.id
FROM berth_consumer_names
WHERE berth_consumer_names.consumer_uuid = consumers.uuid) AS anon_1, (SELECT CASE WHEN (berth_leases.consumer_uuid = consumers.uuid AND berth_leases.consumer_id = consumers.id AND berth_leases.consumer_created_at IS consumers.created_at AND berth_leases.consumer_generation = consumers.generation) THEN 1 ELSE 0 END AS anon_3
FROM berth_leases
WHERE berth_leases.consumer_uuid = consumers.uuid) AS anon_2
FROM consumers
WHERE consumers.uuid IN (__[POSTCOMPILE_uuids])

-- store.consumers._DELETE
DELETE FROM consumers WHERE consumers.id = ? AND consumers.generation = ?

-- store.consumers._DELETE_NAMES
DELETE FROM berth_consumer_names WHERE berth_consumer_names.consumer_uuid IN (__[POSTCOMPILE_consumers])

-- store.consumers._IDS
SELECT 0, projects.external_id AS common_text_1, projects.id
FROM projects
WHERE projects.external_id IN (__[POSTCOMPILE_names_0]) UNION ALL SELECT 1, users.external_id AS common_text_2, users.id
FROM users
WHERE users.external_id IN (__[POSTCOMPILE_names_1]) UNION ALL SELECT 2, consumer_types.name AS common_text_3, consumer_types.id
FROM consumer_types
WHERE consumer_types.name IN (__[POSTCOMPILE_names_2])

-- store.consumers._INSERT
INSERT INTO consumers (created_at, uuid, project_id, user_id, generation, consumer_type_id) VALUES (?, ?, ?, ?, ?, ?)

-- store.consumers._INSERT_NAMES
INSERT INTO berth_consumer_names (project_id, name, consumer_uuid) VALUES (?, ?, ?)

-- store.consumers._TAKEN
SELECT berth_consumer_names.project_id, berth_consumer_names.name, berth_consumer_names.consumer_uuid, consumers.id
FROM berth_consumer_names LEFT OUTER JOIN consumers ON consumers.uuid = berth_consumer_names.consumer_uuid
WHERE berth_consumer_names.project_id IN (__[POSTCOMPILE_projects]) AND berth_consumer_names.name IN (__[POSTCOMPILE_names])

-- store.consumers._UPDATE
UPDATE consumers SET updated_at=?, project_id=?, user_id=?, generation=(consumers.generation + ?), consumer_type_id=? WHERE consumers.id = ? AND consumers.generation = ?

-- store.engine.database._CLOCK
SELECT strftime('%Y-%m-%d %H:%M:%f', 'now') AS server_time_1

-- store.engine.journal._FENCE
UPDATE berth_writer SET seq=(berth_writer.seq + ?), updated_at=? WHERE berth_writer.id = ? AND berth_writer.seq = ?

-- store.engine.journal._FORGET
DELETE FROM berth_journal WHERE berth_journal.writer_id = ? AND berth_journal.seq <= ?

-- store.engine.journal._HAS_NOTED
SELECT berth_journal.seq
FROM berth_journal
WHERE berth_journal.writer_id = ? AND berth_journal.seq = ?
 LIMIT ? OFFSET ?

-- store.engine.journal._HORIZONS
SELECT berth_writer.id, coalesce((SELECT berth_journal.seq - ? AS anon_1
FROM berth_journal
WHERE berth_journal.writer_id = berth_writer.id AND berth_journal.created_at >= ? ORDER BY berth_journal.seq
 LIMIT ? OFFSET ?), (SELECT max(berth_journal.seq) AS max_1
FROM berth_journal
WHERE berth_journal.writer_id = berth_writer.id)) AS coalesce_1
FROM berth_writer

-- store.engine.journal._IDLE_WRITER
SELECT berth_writer.id, berth_writer.seq
FROM berth_writer
WHERE berth_writer.updated_at < ? ORDER BY berth_writer.id
 LIMIT ? OFFSET ?

-- store.engine.journal._MARK
UPDATE berth_writer SET trimmed_seq=? WHERE berth_writer.id = ? AND berth_writer.trimmed_seq < ?

-- store.engine.journal._MOVE
UPDATE berth_writer SET seq=(berth_writer.seq + ?), updated_at=? WHERE berth_writer.id = ? AND berth_writer.seq = ?

-- store.engine.journal._NEW_WRITER
INSERT INTO berth_writer (seq, trimmed_seq, updated_at) VALUES (?, ?, ?)

-- store.engine.journal._NOTE
INSERT INTO berth_journal (writer_id, seq, provider_id, usage_only, created_at, gone_uuid) VALUES (?, ?, ?, ?, ?, ?)

-- store.engine.placement_sweep._DELETE
DELETE FROM berth_placements WHERE berth_placements.id > ? AND berth_placements.id <= ? AND berth_placements.created_at < ? AND NOT (EXISTS (SELECT allocations.id
FROM allocations
WHERE allocations.consumer_id = berth_placements.consumer_uuid))

-- store.engine.placement_sweep._LAST_OF_PART
SELECT max(anon_1.id) AS max_1
FROM (SELECT berth_placements.id AS id
FROM berth_placements
WHERE berth_placements.id > ? ORDER BY berth_placements.id
 LIMIT ? OFFSET ?) AS anon_1

-- store.engine.placement_sweep._NEWEST
SELECT coalesce(max(berth_placements.id), ?) AS coalesce_1
FROM berth_placements

-- store.engine.project_usages._ADD
UPDATE berth_project_usages SET used_0=(berth_project_usages.used_0 + ?), used_1=(berth_project_usages.used_1 + ?), used_2=(berth_project_usages.used_2 + ?), used_3=(berth_project_usages.used_3 + ?) WHERE berth_project_usages.project_id = ? AND berth_project_usages.user_id = ? AND berth_project_usages.consumer_type_id = ? AND berth_project_usages.first_class = ? AND berth_project_usages.writer_id = ?

-- store.engine.project_usages._BEGIN
INSERT INTO berth_project_usages (project_id, user_id, consumer_type_id, first_class, writer_id, used_0, used_1, used_2, used_3) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)

-- store.engine.project_usages._OF_ENDED_WRITERS
SELECT berth_project_usages.project_id, berth_project_usages.user_id, berth_project_usages.consumer_type_id, berth_project_usages.first_class, berth_project_usages.writer_id, berth_project_usages.used_0, berth_project_usages.used_1, berth_project_usages.used_2, berth_project_usages.used_3
FROM berth_project_usages JOIN berth_writer ON berth_writer.id = berth_project_usages.writer_id
WHERE berth_writer.updated_at < ?
 LIMIT ? OFFSET ?

-- store.engine.project_usages._TAKE
DELETE FROM berth_project_usages WHERE berth_project_usages.project_id = ? AND berth_project_usages.user_id = ? AND berth_project_usages.consumer_type_id = ? AND berth_project_usages.first_class = ? AND berth_project_usages.writer_id = ? AND berth_project_usages.used_0 = ? AND berth_project_usages.used_1 = ? AND berth_project_usages.used_2 = ? AND berth_project_usages.used_3 = ?

-- store.foreign_writes._CLASS_NAMES
SELECT resource_classes.id, resource_classes.name
FROM resource_classes

-- store.foreign_writes._MOVED
SELECT resource_providers.id, resource_providers.uuid, resource_providers.name, resource_providers.generation, max(berth_usages.generation) AS known
FROM resource_providers LEFT OUTER JOIN inventories ON inventories.resource_provider_id = resource_providers.id LEFT OUTER JOIN berth_usages ON berth_usages.resource_provider_id = resource_providers.id
WHERE resource_providers.id IN (__[POSTCOMPILE_providers]) AND (inventories.id IS NOT NULL OR berth_usages.resource_provider_id IS NOT NULL) GROUP BY resource_providers.id, resource_providers.uuid, resource_providers.name, resource_providers.generation
HAVING coalesce(max(berth_usages.generation), ?) != coalesce(resource_providers.generation, ?)

-- store.generations._BUMP
UPDATE resource_providers SET updated_at=?, generation=(resource_providers.generation + ?) WHERE resource_providers.id = ? AND resource_providers.generation = coalesce(?, resource_providers.generation)

-- store.generations._HAS_STOCK
SELECT (EXISTS (SELECT *
FROM inventories
WHERE inventories.resource_provider_id = ?)) OR (EXISTS (SELECT *
FROM berth_usages
WHERE berth_usages.resource_provider_id = ?)) AS anon_1

-- store.generations._KEEP
UPDATE berth_usages SET generation=? WHERE berth_usages.resource_provider_id = ? AND (EXISTS (SELECT one.anon_1
FROM (SELECT ? AS anon_1
FROM berth_usages AS known
WHERE known.resource_provider_id = ? AND known.generation = ?
 LIMIT ? OFFSET ?) AS one))

-- store.generations._PIN
UPDATE resource_providers SET updated_at=resource_providers.updated_at, generation=resource_providers.generation WHERE resource_providers.id = ? AND resource_providers.generation = ?

-- store.identity._INSERT
INSERT INTO berth_meta ("key", value) VALUES (?, ?)

-- store.identity._READ
SELECT berth_meta.value
FROM berth_meta
WHERE berth_meta."key" = ?

-- store.identity._REMOVE
DELETE FROM berth_meta WHERE berth_meta."key" = ?

-- store.identity._REWRITE
UPDATE berth_meta SET value=berth_meta.value WHERE berth_meta."key" = ?

-- store.index_feed._CLASSES
SELECT resource_classes.name, resource_classes.id
FROM resource_classes

-- store.index_feed._HEADS
SELECT berth_writer.id, berth_writer.seq, berth_writer.trimmed_seq
FROM berth_writer

-- store.index_feed._LAST_ROOT_OF_PART
SELECT resource_providers.root_provider_id
FROM resource_providers
WHERE resource_providers.root_provider_id > ? ORDER BY resource_providers.root_provider_id
 LIMIT ? OFFSET ?

-- store.index_feed._NOTED
SELECT berth_journal.provider_id, min(CAST(berth_journal.usage_only AS INTEGER)) AS min_1
FROM berth_journal
WHERE berth_journal.writer_id = ? AND berth_journal.seq > ? GROUP BY berth_journal.provider_id

-- store.index_feed._OF_NO_ROOT
SELECT resource_providers.id, resource_providers.uuid, resource_providers.parent_provider_id, resource_providers.root_provider_id, resource_providers.name, coalesce(resource_providers.generation, ?) AS coalesce_1, coalesce(CAST(round((julianday(substr(coalesce(resource_providers.updated_at, resource_providers.created_at), 1, 19)) - 2440587.5) * 86400) AS INTEGER), ?) AS coalesce_3
FROM resource_providers
WHERE resource_providers.root_provider_id IS NULL OR resource_providers.root_provider_id < ?

-- store.index_feed._OF_ROOTS[0]
SELECT resource_providers.id, resource_providers.uuid, resource_providers.parent_provider_id, resource_providers.root_provider_id, resource_providers.name, coalesce(resource_providers.generation, ?) AS coalesce_1, coalesce(CAST(round((julianday(substr(coalesce(resource_providers.updated_at, resource_providers.created_at), 1, 19)) - 2440587.5) * 86400) AS INTEGER), ?) AS coalesce_3
FROM resource_providers
WHERE resource_providers.root_provider_id IN (__[POSTCOMPILE_roots])

-- store.index_feed._OF_ROOTS[1]
SELECT inventories.resource_provider_id, inventories.resource_class_id, inventories.total, inventories.reserved, inventories.allocation_ratio, coalesce(berth_usages.used, ?) AS coalesce_1, inventories.min_unit, inventories.max_unit, inventories.step_size, coalesce(CAST(round((julianday(substr(coalesce(inventories.updated_at, inventories.created_at), 1, 19)) - 2440587.5) * 86400) AS INTEGER), ?) AS coalesce_3
FROM resource_providers JOIN inventories ON inventories.resource_provider_id = resource_providers.id LEFT OUTER JOIN berth_usages ON berth_usages.resource_provider_id = inventories.resource_provider_id AND berth_usages.resource_class_id = inventories.resource_class_id
WHERE resource_providers.root_provider_id IN (__[POSTCOMPILE_roots])

-- store.index_feed._OF_ROOTS[2]
SELECT resource_provider_traits.resource_provider_id, resource_provider_traits.trait_id
FROM resource_providers JOIN resource_provider_traits ON resource_provider_traits.resource_provider_id = resource_providers.id
WHERE resource_providers.root_provider_id IN (__[POSTCOMPILE_roots])

-- store.index_feed._OF_ROOTS[3]
SELECT resource_provider_aggregates.resource_provider_id, resource_provider_aggregates.aggregate_id
FROM resource_providers JOIN resource_provider_aggregates ON resource_provider_aggregates.resource_provider_id = resource_providers.id
WHERE resource_providers.root_provider_id IN (__[POSTCOMPILE_roots])

-- store.index_feed._OF_ROOTS[4]
SELECT berth_drained.provider_id, berth_drained.drain_id
FROM resource_providers JOIN berth_drained ON berth_drained.provider_id = resource_providers.id AND berth_drained.provider_uuid = resource_providers.uuid
WHERE resource_providers.root_provider_id IN (__[POSTCOMPILE_roots])

-- store.index_feed._OF_ROOT_RANGE[0]
SELECT resource_providers.id, resource_providers.uuid, resource_providers.parent_provider_id, resource_providers.root_provider_id, resource_providers.name, coalesce(resource_providers.generation, ?) AS coalesce_1, coalesce(CAST(round((julianday(substr(coalesce(resource_providers.updated_at, resource_providers.created_at), 1, 19)) - 2440587.5) * 86400) AS INTEGER), ?) AS coalesce_3
FROM resource_providers
WHERE resource_providers.root_provider_id > ? AND resource_providers.root_provider_id <= ?

-- store.index_feed._OF_ROOT_RANGE[1]
SELECT inventories.resource_provider_id, inventories.resource_class_id, inventories.total, inventories.reserved, inventories.allocation_ratio, coalesce(berth_usages.used, ?) AS coalesce_1, inventories.min_unit, inventories.max_unit, inventories.step_size, coalesce(CAST(round((julianday(substr(coalesce(inventories.updated_at, inventories.created_at), 1, 19)) - 2440587.5) * 86400) AS INTEGER), ?) AS coalesce_3
FROM resource_providers JOIN inventories ON inventories.resource_provider_id = resource_providers.id LEFT OUTER JOIN berth_usages ON berth_usages.resource_provider_id = inventories.resource_provider_id AND berth_usages.resource_class_id = inventories.resource_class_id
WHERE resource_providers.root_provider_id > ? AND resource_providers.root_provider_id <= ?

-- store.index_feed._OF_ROOT_RANGE[2]
SELECT resource_provider_traits.resource_provider_id, resource_provider_traits.trait_id
FROM resource_providers JOIN resource_provider_traits ON resource_provider_traits.resource_provider_id = resource_providers.id
WHERE resource_providers.root_provider_id > ? AND resource_providers.root_provider_id <= ?

-- store.index_feed._OF_ROOT_RANGE[3]
SELECT resource_provider_aggregates.resource_provider_id, resource_provider_aggregates.aggregate_id
FROM resource_providers JOIN resource_provider_aggregates ON resource_provider_aggregates.resource_provider_id = resource_providers.id
WHERE resource_providers.root_provider_id > ? AND resource_providers.root_provider_id <= ?

-- store.index_feed._OF_ROOT_RANGE[4]
SELECT berth_drained.provider_id, berth_drained.drain_id
FROM resource_providers JOIN berth_drained ON berth_drained.provider_id = resource_providers.id AND berth_drained.provider_uuid = resource_providers.uuid
WHERE resource_providers.root_provider_id > ? AND resource_providers.root_provider_id <= ?

-- store.index_feed._ROOTS_OF
SELECT resource_providers.root_provider_id
FROM resource_providers
WHERE resource_providers.id IN (__[POSTCOMPILE_providers])

-- store.index_feed._STATES
SELECT resource_providers.id, coalesce(resource_providers.generation, ?) AS coalesce_1, coalesce(CAST(round((julianday(substr(coalesce(resource_providers.updated_at, resource_providers.created_at), 1, 19)) - 2440587.5) * 86400) AS INTEGER), ?) AS coalesce_3, berth_usages.resource_class_id, berth_usages.used
FROM resource_providers LEFT OUTER JOIN berth_usages ON berth_usages.resource_provider_id = resource_providers.id
WHERE resource_providers.id IN (__[POSTCOMPILE_providers])

-- store.index_feed._TEXTS_OF_ROOT_RANGE[0]
SELECT count(*) AS count_1, group_concat(resource_providers.id) || ',' AS joined_1, group_concat(coalesce(resource_providers.uuid, ?), '
') || '
' AS lines_1, group_concat(coalesce(resource_providers.parent_provider_id, ?)) || ',' AS joined_2, group_concat(resource_providers.root_provider_id) || ',' AS joined_3, group_concat(coalesce(resource_providers.name, ?), '
') || '
' AS lines_2, group_concat(coalesce(resource_providers.generation, ?)) || ',' AS joined_4, group_concat(coalesce(CAST(round((julianday(substr(coalesce(resource_providers.updated_at, resource_providers.created_at), 1, 19)) - 2440587.5) * 86400) AS INTEGER), ?)) || ',' AS joined_5
FROM resource_providers
WHERE resource_providers.root_provider_id > ? AND resource_providers.root_provider_id <= ?

-- store.index_feed._TEXTS_OF_ROOT_RANGE[1]
SELECT count(*) AS count_1, group_concat(inventories.resource_provider_id) || ',' AS joined_1, group_concat(inventories.resource_class_id) || ',' AS joined_2, group_concat(inventories.total) || ',' AS joined_3, group_concat(inventories.reserved) || ',' AS joined_4, group_concat(CASE WHEN (inventories.allocation_ratio BETWEEN ? AND ? AND round(inventories.allocation_ratio * ?) / (? + 0.0) = inventories.allocation_ratio) THEN CAST(round(inventories.allocation_ratio * ?) AS BIGINT) END) || ',' AS joined_5, group_concat(coalesce(berth_usages.used, ?)) || ',' AS joined_6, group_concat(inventories.min_unit) || ',' AS joined_7, group_concat(inventories.max_unit) || ',' AS joined_8, group_concat(inventories.step_size) || ',' AS joined_9, group_concat(coalesce(CAST(round((julianday(substr(coalesce(inventories.updated_at, inventories.created_at), 1, 19)) - 2440587.5) * 86400) AS INTEGER), ?)) || ',' AS joined_10
FROM resource_providers JOIN inventories ON inventories.resource_provider_id = resource_providers.id LEFT OUTER JOIN berth_usages ON berth_usages.resource_provider_id = inventories.resource_provider_id AND berth_usages.resource_class_id = inventories.resource_class_id
WHERE resource_providers.root_provider_id > ? AND resource_providers.root_provider_id <= ?

-- store.index_feed._TEXTS_OF_ROOT_RANGE[2]
SELECT count(*) AS count_1, group_concat(resource_provider_traits.resource_provider_id) || ',' AS joined_1, group_concat(resource_provider_traits.trait_id) || ',' AS joined_2
FROM resource_providers JOIN resource_provider_traits ON resource_provider_traits.resource_provider_id = resource_providers.id
WHERE resource_providers.root_provider_id > ? AND resource_providers.root_provider_id <= ?

-- store.index_feed._TEXTS_OF_ROOT_RANGE[3]
SELECT count(*) AS count_1, group_concat(resource_provider_aggregates.resource_provider_id) || ',' AS joined_1, group_concat(resource_provider_aggregates.aggregate_id) || ',' AS joined_2
FROM resource_providers JOIN resource_provider_aggregates ON resource_provider_aggregates.resource_provider_id = resource_providers.id
WHERE resource_providers.root_provider_id > ? AND resource_providers.root_provider_id <= ?

-- store.index_feed._TEXTS_OF_ROOT_RANGE[4]
SELECT berth_drained.provider_id, berth_drained.drain_id
FROM resource_providers JOIN berth_drained ON berth_drained.provider_id = resource_providers.id AND berth_drained.provider_uuid = resource_providers.uuid
WHERE resource_providers.root_provider_id > ? AND resource_providers.root_provider_id <= ?

-- store.index_feed._TRAITS
SELECT traits.name, traits.id, coalesce(CAST(round((julianday(substr(coalesce(traits.updated_at, traits.created_at), 1, 19)) - 2440587.5) * 86400) AS INTEGER), ?) AS coalesce_1
FROM traits

-- store.inventories._CLASS_NAMES
SELECT resource_classes.name
FROM resource_classes
WHERE resource_classes.id IN (__[POSTCOMPILE_classes]) ORDER BY resource_classes.id

-- store.inventories._DELETE
DELETE FROM inventories WHERE inventories.resource_provider_id = ? AND inventories.resource_class_id = ?

-- store.inventories._DELETE_UNUSED
DELETE FROM berth_usages WHERE berth_usages.resource_provider_id = ? AND berth_usages.resource_class_id = ? AND berth_usages.used = ?

-- store.inventories._INSERT
INSERT INTO inventories (created_at, resource_provider_id, resource_class_id, total, reserved, min_unit, max_unit, step_size, allocation_ratio) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)

-- store.inventories._INSERT_USAGE
INSERT INTO berth_usages (resource_provider_id, resource_class_id, used, generation) SELECT ? AS anon_1, ? AS anon_2, coalesce(sum(allocations.used), ?) AS coalesce_1, ? AS anon_3
FROM allocations
WHERE allocations.resource_provider_id = ? AND allocations.resource_class_id = ?

-- store.inventories._KEYS
SELECT inventories.resource_provider_id, inventories.resource_class_id
FROM inventories
WHERE inventories.resource_provider_id IN (__[POSTCOMPILE_providers])

-- store.inventories._KEYS_IN_USE
SELECT berth_usages.resource_provider_id, berth_usages.resource_class_id
FROM berth_usages
WHERE berth_usages.resource_provider_id IN (__[POSTCOMPILE_providers]) AND berth_usages.used > ?

-- store.inventories._PIN_CLASSES
UPDATE resource_classes SET updated_at=resource_classes.updated_at, name=resource_classes.name WHERE resource_classes.id IN (__[POSTCOMPILE_classes])

-- store.inventories._STORED
SELECT inventories.resource_provider_id, inventories.resource_class_id, inventories.total, inventories.reserved, inventories.min_unit, inventories.max_unit, inventories.step_size, inventories.allocation_ratio
FROM inventories
WHERE inventories.resource_provider_id IN (__[POSTCOMPILE_providers])

-- store.inventories._UPDATE
UPDATE inventories SET updated_at=?, total=?, reserved=?, min_unit=?, max_unit=?, step_size=?, allocation_ratio=? WHERE inventories.resource_provider_id = ? AND inventories.resource_class_id = ?

-- store.lease_sweep._DUE
SELECT berth_leases.consumer_uuid, berth_leases.expires_at, berth_leases.renewals, berth_leases.id
FROM berth_leases
WHERE berth_leases.expires_at <= ? AND berth_leases.expires_at >= ? AND (berth_leases.expires_at > ? OR berth_leases.id > ?) ORDER BY berth_leases.expires_at, berth_leases.id
 LIMIT ? OFFSET ?

-- store.lease_sweep._PLACES
SELECT DISTINCT consumers.uuid, projects.external_id, root.name
FROM consumers JOIN projects ON projects.id = consumers.project_id JOIN allocations ON allocations.consumer_id = consumers.uuid JOIN resource_providers ON resource_providers.id = allocations.resource_provider_id JOIN resource_providers AS root ON root.id = resource_providers.root_provider_id
WHERE consumers.uuid IN (__[POSTCOMPILE_consumers]) ORDER BY consumers.uuid, root.name

-- store.lease_sweep._PRESENT
SELECT berth_leases.consumer_uuid, berth_leases.expires_at, berth_leases.renewals
FROM berth_leases
WHERE berth_leases.consumer_uuid IN (__[POSTCOMPILE_consumers])

-- store.leases._COUNT
SELECT count(*) AS count_1
FROM berth_leases JOIN consumers ON berth_leases.consumer_uuid = consumers.uuid AND berth_leases.consumer_id = consumers.id AND berth_leases.consumer_created_at IS consumers.created_at AND berth_leases.consumer_generation = consumers.generation

-- store.leases._DELETE
DELETE FROM berth_leases WHERE berth_leases.consumer_uuid IN (__[POSTCOMPILE_consumers])

-- store.leases._DELETE_AS_SEEN
DELETE FROM berth_leases WHERE berth_leases.consumer_uuid = ? AND berth_leases.expires_at = ? AND berth_leases.renewals = ?

-- store.leases._HOLDER
SELECT consumers.id, consumers.generation, CASE WHEN (berth_leases.consumer_uuid = consumers.uuid AND berth_leases.consumer_id = consumers.id AND berth_leases.consumer_created_at IS consumers.created_at AND berth_leases.consumer_generation = consumers.generation) THEN 1 ELSE 0 END AS anon_1, berth_leases.consumer_uuid, berth_leases.expires_at, berth_leases.renewals
FROM consumers LEFT OUTER JOIN berth_leases ON berth_leases.consumer_uuid = consumers.uuid
WHERE consumers.uuid = ? AND (EXISTS (SELECT allocations.id
FROM allocations
WHERE allocations.consumer_id = consumers.uuid))

-- store.leases._INSERT
INSERT INTO berth_leases (consumer_uuid, consumer_id, consumer_created_at, consumer_generation, expires_at, renewals) SELECT consumers.uuid, consumers.id, consumers.created_at, consumers.generation, ? AS anon_1, 0
FROM consumers
WHERE consumers.uuid = ?

-- store.leases._INSERT_AS_SEEN
INSERT INTO berth_leases (consumer_uuid, consumer_id, consumer_created_at, consumer_generation, expires_at, renewals) SELECT consumers.uuid, consumers.id, consumers.created_at, consumers.generation, ? AS anon_1, 0
FROM consumers
WHERE consumers.id = ? AND consumers.generation = ?

-- store.leases._LISTED
SELECT berth_leases.consumer_uuid, berth_consumer_names.name, projects.external_id, users.external_id AS external_id_1, berth_leases.expires_at
FROM berth_leases JOIN consumers ON berth_leases.consumer_uuid = consumers.uuid AND berth_leases.consumer_id = consumers.id AND berth_leases.consumer_created_at IS consumers.created_at AND berth_leases.consumer_generation = consumers.generation JOIN projects ON projects.id = consumers.project_id JOIN users ON users.id = consumers.user_id LEFT OUTER JOIN berth_consumer_names ON berth_consumer_names.consumer_uuid = consumers.uuid

-- store.leases._NEW
SELECT consumers.uuid, consumers.id, consumers.created_at, consumers.generation, ? AS anon_1, 0
FROM consumers

-- store.leases._NEXT
SELECT berth_leases.consumer_uuid, berth_consumer_names.name, projects.external_id, users.external_id AS external_id_1, berth_leases.expires_at
FROM berth_leases JOIN consumers ON berth_leases.consumer_uuid = consumers.uuid AND berth_leases.consumer_id = consumers.id AND berth_leases.consumer_created_at IS consumers.created_at AND berth_leases.consumer_generation = consumers.generation JOIN projects ON projects.id = consumers.project_id JOIN users ON users.id = consumers.user_id LEFT OUTER JOIN berth_consumer_names ON berth_consumer_names.consumer_uuid = consumers.uuid
WHERE berth_leases.consumer_uuid > ? ORDER BY berth_leases.consumer_uuid
 LIMIT ? OFFSET ?

-- store.leases._NEXT_OF_PROJECT
SELECT berth_leases.consumer_uuid, berth_consumer_names.name, projects.external_id, users.external_id AS external_id_1, berth_leases.expires_at
FROM berth_leases JOIN consumers ON berth_leases.consumer_uuid = consumers.uuid AND berth_leases.consumer_id = consumers.id AND berth_leases.consumer_created_at IS consumers.created_at AND berth_leases.consumer_generation = consumers.generation JOIN projects ON projects.id = consumers.project_id JOIN users ON users.id = consumers.user_id LEFT OUTER JOIN berth_consumer_names ON berth_consumer_names.consumer_uuid = consumers.uuid
WHERE berth_leases.consumer_uuid > ? AND projects.external_id = ? ORDER BY berth_leases.consumer_uuid
 LIMIT ? OFFSET ?

-- store.leases._ONE
SELECT berth_leases.consumer_uuid, berth_consumer_names.name, projects.external_id, users.external_id AS external_id_1, berth_leases.expires_at
FROM berth_leases JOIN consumers ON berth_leases.consumer_uuid = consumers.uuid AND berth_leases.consumer_id = consumers.id AND berth_leases.consumer_created_at IS consumers.created_at AND berth_leases.consumer_generation = consumers.generation JOIN projects ON projects.id = consumers.project_id JOIN users ON users.id = consumers.user_id LEFT OUTER JOIN berth_consumer_names ON berth_consumer_names.consumer_uuid = consumers.uuid
WHERE berth_leases.consumer_uuid = ?

-- store.leases._RENEW
UPDATE berth_leases SET consumer_id=?, consumer_created_at=(SELECT consumers.created_at
FROM consumers
WHERE consumers.uuid = berth_leases.consumer_uuid), consumer_generation=?, expires_at=?, renewals=(berth_leases.renewals + ?) WHERE berth_leases.consumer_uuid = ? AND berth_leases.expires_at = ? AND berth_leases.renewals = ?

-- store.lookups._CLASSES_BY_NAME
SELECT resource_classes.name, resource_classes.id
FROM resource_classes
WHERE resource_classes.name IN (__[POSTCOMPILE_names])

-- store.lookups._PROVIDER
SELECT resource_providers.id, resource_providers.uuid, resource_providers.generation
FROM resource_providers

-- store.lookups._PROVIDERS_BY_UUID
SELECT resource_providers.id, resource_providers.uuid, resource_providers.generation
FROM resource_providers
WHERE resource_providers.uuid IN (__[POSTCOMPILE_uuids])

-- store.lookups._PROVIDER_BY_UUID
SELECT resource_providers.id, resource_providers.uuid, resource_providers.generation
FROM resource_providers
WHERE resource_providers.uuid = ?

-- store.lookups._TRAITS_BY_NAME
SELECT traits.name, traits.id
FROM traits
WHERE traits.name IN (__[POSTCOMPILE_names])

-- store.named._ADD
INSERT INTO berth_drained (drain_id, provider_id, provider_uuid) VALUES (?, ?, ?)

-- store.named._DRAINS[0]
SELECT berth_drains.name, berth_drains.id, berth_drains.generation, berth_drains.effect, berth_drains.reason, berth_drains.created_at, berth_drains.created_by
FROM berth_drains

-- store.named._DRAINS[1]
SELECT berth_drains.name, berth_drains.id, berth_drains.generation, berth_drains.effect, berth_drains.reason, berth_drains.created_at, berth_drains.created_by
FROM berth_drains
WHERE berth_drains.name = ?

-- store.named._DRAINS[2]
SELECT berth_drains.id
FROM berth_drains

-- store.named._DRAINS[3]
INSERT INTO berth_drains (id, name, generation, effect, reason, created_at, created_by) VALUES (?, ?, ?, ?, ?, ?, ?)

-- store.named._DRAINS[4]
UPDATE berth_drains SET generation=(berth_drains.generation + ?), effect=?, reason=? WHERE berth_drains.id = ? AND berth_drains.generation = ?

-- store.named._DRAINS[5]
DELETE FROM berth_drains WHERE berth_drains.id = ? AND berth_drains.generation = ?

-- store.named._FLAVORS[0]
SELECT berth_flavors.name, berth_flavors.request, berth_flavors.expose, berth_flavors.description
FROM berth_flavors

-- store.named._FLAVORS[1]
SELECT berth_flavors.name, berth_flavors.request, berth_flavors.expose, berth_flavors.description
FROM berth_flavors
WHERE berth_flavors.name = ?

-- store.named._FLAVORS[2]
SELECT berth_flavors.id
FROM berth_flavors

-- store.named._FLAVORS[3]
INSERT INTO berth_flavors (id, name, request, expose, description) VALUES (?, ?, ?, ?, ?)

-- store.named._FLAVORS[4]
UPDATE berth_flavors SET request=?, expose=?, description=? WHERE berth_flavors.name = ?

-- store.named._FLAVORS[5]
DELETE FROM berth_flavors WHERE berth_flavors.name = ?

-- store.named._HOLDING
SELECT DISTINCT allocations.resource_provider_id, allocations.consumer_id
FROM allocations
WHERE allocations.resource_provider_id IN (__[POSTCOMPILE_providers])

-- store.named._LABELS[0]
SELECT berth_labels.aggregate_uuid, berth_labels.labels
FROM berth_labels

-- store.named._LABELS[1]
SELECT berth_labels.aggregate_uuid, berth_labels.labels
FROM berth_labels
WHERE berth_labels.aggregate_uuid = ?

-- store.named._LABELS[2]
SELECT berth_labels.id
FROM berth_labels

-- store.named._LABELS[3]
INSERT INTO berth_labels (aggregate_uuid, name, labels) VALUES (?, ?, ?)

-- store.named._LABELS[4]
UPDATE berth_labels SET name=?, labels=? WHERE berth_labels.aggregate_uuid = ?

-- store.named._LABELS[5]
DELETE FROM berth_labels WHERE berth_labels.aggregate_uuid = ?

-- store.named._OF_AGGREGATE_OR_NAME
SELECT berth_labels.aggregate_uuid, berth_labels.name, berth_labels.labels
FROM berth_labels
WHERE berth_labels.aggregate_uuid = ? OR berth_labels.name = ?

-- store.named._PROVIDERS
SELECT berth_drained.provider_id, berth_drained.provider_uuid
FROM berth_drained
WHERE berth_drained.drain_id = ?

-- store.named._REMOVE
DELETE FROM berth_drained WHERE berth_drained.drain_id = ? AND berth_drained.provider_id IN (__[POSTCOMPILE_providers])

-- store.named._REMOVE_ALL
DELETE FROM berth_drained WHERE berth_drained.drain_id = ?

-- store.placements._HOLDING
SELECT consumers.uuid, consumers.generation, berth_leases.expires_at, resource_providers.id, resource_providers.uuid AS uuid_1, resource_classes.id AS id_1, resource_classes.name, allocations.used
FROM consumers LEFT OUTER JOIN berth_leases ON berth_leases.consumer_uuid = consumers.uuid AND berth_leases.consumer_id = consumers.id AND berth_leases.consumer_created_at IS consumers.created_at AND berth_leases.consumer_generation = consumers.generation LEFT OUTER JOIN allocations ON allocations.consumer_id = consumers.uuid LEFT OUTER JOIN resource_providers ON resource_providers.id = allocations.resource_provider_id LEFT OUTER JOIN resource_classes ON resource_classes.id = allocations.resource_class_id
WHERE consumers.uuid IN (__[POSTCOMPILE_consumers]) ORDER BY allocations.id

-- store.placements._PLACEMENTS
SELECT berth_placements.consumer_uuid, berth_placements.digest, berth_placements.allocations_digest, berth_placements.host_uuid, berth_placements.mappings, berth_placements.request
FROM berth_placements
WHERE berth_placements.consumer_uuid IN (__[POSTCOMPILE_consumers])

-- store.provider_trees.RENAME
UPDATE resource_providers SET updated_at=?, name=? WHERE resource_providers.id = ?

-- store.provider_trees._BY_NAME
SELECT resource_providers.uuid, resource_providers.name
FROM resource_providers
WHERE resource_providers.name IN (__[POSTCOMPILE_names])

-- store.provider_trees._INSERT
INSERT INTO resource_providers (created_at, uuid, name, generation) VALUES (?, ?, ?, ?)

-- store.provider_trees._IN_USE
SELECT DISTINCT allocations.resource_provider_id, resource_classes.name
FROM allocations JOIN resource_classes ON resource_classes.id = allocations.resource_class_id
WHERE allocations.resource_provider_id IN (__[POSTCOMPILE_providers])

-- store.provider_trees._PLACE
UPDATE resource_providers SET root_provider_id=?, parent_provider_id=? WHERE resource_providers.id = ?

-- store.providers.RENAME
UPDATE resource_providers SET updated_at=?, name=? WHERE resource_providers.id = ?

-- store.providers._AN_ALLOCATION
SELECT allocations.id
FROM allocations
WHERE allocations.resource_provider_id = ?
 LIMIT ? OFFSET ?

-- store.providers._A_CHILD
SELECT resource_providers.id
FROM resource_providers
WHERE resource_providers.parent_provider_id = ?
 LIMIT ? OFFSET ?

-- store.providers._DELETE
DELETE FROM resource_providers WHERE resource_providers.id = ?

-- store.providers._DELETE_PARTS[0]
DELETE FROM resource_provider_traits WHERE resource_provider_traits.resource_provider_id = ?

-- store.providers._DELETE_PARTS[1]
DELETE FROM resource_provider_aggregates WHERE resource_provider_aggregates.resource_provider_id = ?

-- store.providers._DELETE_PARTS[2]
DELETE FROM berth_usages WHERE berth_usages.resource_provider_id = ?

-- store.providers._DELETE_PARTS[3]
DELETE FROM inventories WHERE inventories.resource_provider_id = ?

-- store.providers._DELETE_PARTS[4]
DELETE FROM berth_drained WHERE berth_drained.provider_id = ?

-- store.providers._INSERT_CHILD
INSERT INTO resource_providers (created_at, uuid, name, generation, root_provider_id, parent_provider_id) VALUES (?, ?, ?, ?, (SELECT root.id
FROM resource_providers AS root
WHERE root.uuid = ?), ?)

-- store.providers._INSERT_ROOT
INSERT INTO resource_providers (created_at, uuid, name, generation) VALUES (?, ?, ?, ?)

-- store.providers._OTHERS_OF_NAME
SELECT resource_providers.id
FROM resource_providers
WHERE resource_providers.name = ? AND resource_providers.id != ?

-- store.providers._OWN_ROOT
UPDATE resource_providers SET root_provider_id=resource_providers.id WHERE resource_providers.id = ?

-- store.providers._PIN_PLACE
UPDATE resource_providers SET updated_at=resource_providers.updated_at, root_provider_id=resource_providers.root_provider_id WHERE resource_providers.id = ? AND resource_providers.root_provider_id = (SELECT root.id
FROM resource_providers AS root
WHERE root.uuid = ?)

-- store.providers._PLACE
UPDATE resource_providers SET parent_provider_id=? WHERE resource_providers.id = ? AND resource_providers.parent_provider_id IS ?

-- store.providers._PROVIDER_BY_UUID
SELECT resource_providers.id, resource_providers.uuid, resource_providers.name, resource_providers.generation, parent.uuid AS uuid_1, coalesce(root.uuid, resource_providers.uuid) AS coalesce_1, resource_providers.created_at, resource_providers.updated_at
FROM resource_providers LEFT OUTER JOIN resource_providers AS parent ON parent.id = resource_providers.parent_provider_id LEFT OUTER JOIN resource_providers AS root ON root.id = resource_providers.root_provider_id
WHERE resource_providers.uuid = ?

-- store.providers._REROOT
UPDATE resource_providers SET updated_at=?, root_provider_id=? WHERE resource_providers.id IN (__[POSTCOMPILE_providers]) AND resource_providers.root_provider_id = ?

-- store.providers._ROOT_OF
SELECT resource_providers.root_provider_id
FROM resource_providers
WHERE resource_providers.id = ?

-- store.providers._TAKEN
SELECT resource_providers.uuid
FROM resource_providers
WHERE resource_providers.uuid = ? OR resource_providers.name = ?

-- store.providers._TREE
SELECT resource_providers.id, resource_providers.parent_provider_id
FROM resource_providers
WHERE resource_providers.root_provider_id = ?

-- store.providers._UNROOT
UPDATE resource_providers SET root_provider_id=? WHERE resource_providers.id = ? AND resource_providers.generation = ?

-- store.resource_classes._ALL
SELECT resource_classes.name, coalesce(resource_classes.updated_at, resource_classes.created_at) AS coalesce_1
FROM resource_classes ORDER BY resource_classes.id

-- store.resource_classes._DELETE_UNUSED
DELETE FROM resource_classes WHERE resource_classes.id = ? AND resource_classes.name = ? AND NOT (EXISTS (SELECT *
FROM inventories
WHERE inventories.resource_class_id = ?))

-- store.resource_classes._INSERT
INSERT INTO resource_classes (id, name, created_at) SELECT CASE WHEN (max(resource_classes.id) >= ?) THEN max(resource_classes.id) + ? ELSE ? END AS anon_1, ? AS anon_2, ? AS anon_3
FROM resource_classes

-- store.resource_classes._IS_USED
SELECT inventories.id
FROM inventories
WHERE inventories.resource_class_id = ?
 LIMIT ? OFFSET ?

-- store.resource_classes._OF_NAME
SELECT resource_classes.name, coalesce(resource_classes.updated_at, resource_classes.created_at) AS coalesce_1
FROM resource_classes
WHERE resource_classes.name = ?

-- store.resource_classes._RENAME
UPDATE resource_classes SET updated_at=?, name=? WHERE resource_classes.id = ? AND resource_classes.name = ?

-- store.resource_classes._WITH_CLASS
SELECT inventories.resource_provider_id
FROM inventories
WHERE inventories.resource_class_id = ?

-- store.traits._DELETE_UNUSED
DELETE FROM traits WHERE traits.id = ? AND NOT (EXISTS (SELECT *
FROM resource_provider_traits
WHERE resource_provider_traits.trait_id = ?))

-- store.traits._GIVE
INSERT INTO resource_provider_traits (created_at, trait_id, resource_provider_id) VALUES (?, ?, ?)

-- store.traits._IDS_OF_PROVIDER
SELECT resource_provider_traits.trait_id
FROM resource_provider_traits
WHERE resource_provider_traits.resource_provider_id = ?

-- store.traits._IS_USED
SELECT resource_provider_traits.trait_id
FROM resource_provider_traits
WHERE resource_provider_traits.trait_id = ?
 LIMIT ? OFFSET ?

-- store.traits._RECORD
SELECT traits.name, traits.created_at, traits.updated_at
FROM traits
WHERE traits.name = ?

-- store.traits._TAKE
DELETE FROM resource_provider_traits WHERE resource_provider_traits.resource_provider_id = ? AND resource_provider_traits.trait_id IN (__[POSTCOMPILE_traits])

-- store.traits._TRAITS_OF_PROVIDER
SELECT traits.name, coalesce(traits.updated_at, traits.created_at) AS coalesce_1
FROM traits JOIN resource_provider_traits ON resource_provider_traits.trait_id = traits.id
WHERE resource_provider_traits.resource_provider_id = ? ORDER BY traits.id

-- store.tree_rows._AGGREGATES
SELECT resource_provider_aggregates.resource_provider_id, placement_aggregates.uuid
FROM resource_provider_aggregates JOIN resource_providers ON resource_providers.id = resource_provider_aggregates.resource_provider_id JOIN placement_aggregates ON placement_aggregates.id = resource_provider_aggregates.aggregate_id
WHERE resource_providers.root_provider_id = ?

-- store.tree_rows._IDS
SELECT resource_providers.id
FROM resource_providers
WHERE resource_providers.root_provider_id = ?

-- store.tree_rows._INVENTORIES
SELECT inventories.resource_provider_id, resource_classes.name, inventories.total, inventories.reserved, inventories.min_unit, inventories.max_unit, inventories.step_size, inventories.allocation_ratio
FROM inventories JOIN resource_providers ON resource_providers.id = inventories.resource_provider_id JOIN resource_classes ON resource_classes.id = inventories.resource_class_id
WHERE resource_providers.root_provider_id = ?

-- store.tree_rows._LOCK
UPDATE resource_providers SET updated_at=resource_providers.updated_at, generation=resource_providers.generation WHERE resource_providers.id IN (__[POSTCOMPILE_providers]) AND resource_providers.root_provider_id = ?

-- store.tree_rows._PROVIDERS
SELECT resource_providers.id, resource_providers.uuid, resource_providers.generation, resource_providers.name, resource_providers.parent_provider_id
FROM resource_providers
WHERE resource_providers.root_provider_id = ? ORDER BY resource_providers.id

-- store.tree_rows._ROOTS
SELECT resource_providers.uuid, resource_providers.name, resource_providers.root_provider_id
FROM resource_providers
WHERE resource_providers.uuid = ? OR resource_providers.name = ?

-- store.tree_rows._TRAITS
SELECT resource_provider_traits.resource_provider_id, traits.name
FROM resource_provider_traits JOIN resource_providers ON resource_providers.id = resource_provider_traits.resource_provider_id JOIN traits ON traits.id = resource_provider_traits.trait_id
WHERE resource_providers.root_provider_id = ?

-- store.usage_counts._CORRECT
UPDATE berth_usages SET used=? WHERE berth_usages.resource_provider_id = ? AND berth_usages.resource_class_id = ? AND berth_usages.used = ?

-- store.usage_counts._COUNT
SELECT count(*) AS count_1
FROM inventories

-- store.usage_counts._FORGET
DELETE FROM berth_usages WHERE berth_usages.resource_provider_id = ? AND berth_usages.resource_class_id = ? AND berth_usages.used = ?

-- store.usage_counts._HOLD
UPDATE resource_providers SET updated_at=resource_providers.updated_at, generation=resource_providers.generation WHERE resource_providers.id = ?

-- store.usage_counts._LAST_OF_PART
SELECT inventories.resource_provider_id
FROM inventories
WHERE inventories.resource_provider_id > ? ORDER BY inventories.resource_provider_id
 LIMIT ? OFFSET ?

-- store.usage_counts._LEVEL
UPDATE berth_usages SET generation=(SELECT resource_providers.generation
FROM resource_providers
WHERE resource_providers.id = berth_usages.resource_provider_id) WHERE berth_usages.resource_provider_id = ?

-- store.usage_counts._MISSING_OF_PART
INSERT INTO berth_usages (resource_provider_id, resource_class_id, used, generation) SELECT inventories.resource_provider_id, inventories.resource_class_id, CAST(coalesce(counted.used, ?) AS BIGINT) AS counted, (SELECT resource_providers.generation
FROM resource_providers
WHERE resource_providers.id = inventories.resource_provider_id) AS anon_1
FROM inventories LEFT OUTER JOIN (SELECT allocations.resource_provider_id AS resource_provider_id, allocations.resource_class_id AS resource_class_id, sum(allocations.used) AS used
FROM allocations
WHERE allocations.resource_provider_id > ? AND allocations.resource_provider_id <= ? GROUP BY allocations.resource_provider_id, allocations.resource_class_id) AS counted ON counted.resource_provider_id = inventories.resource_provider_id AND counted.resource_class_id = inventories.resource_class_id LEFT OUTER JOIN berth_usages ON berth_usages.resource_provider_id = inventories.resource_provider_id AND berth_usages.resource_class_id = inventories.resource_class_id
WHERE inventories.resource_provider_id > ? AND inventories.resource_provider_id <= ? AND berth_usages.used IS NULL

-- store.usage_counts._MOVED_OF_PART
SELECT resource_providers.id, resource_providers.generation, max(berth_usages.generation) AS known
FROM resource_providers JOIN berth_usages ON berth_usages.resource_provider_id = resource_providers.id
WHERE resource_providers.id > ? AND resource_providers.id <= ? GROUP BY resource_providers.id, resource_providers.generation
HAVING coalesce(max(berth_usages.generation), ?) != coalesce(resource_providers.generation, ?)

-- store.usage_counts._OF_PART[0]
SELECT inventories.resource_provider_id, inventories.resource_class_id, berth_usages.used, CAST(coalesce(counted.used, ?) AS BIGINT) AS counted
FROM inventories LEFT OUTER JOIN (SELECT allocations.resource_provider_id AS resource_provider_id, allocations.resource_class_id AS resource_class_id, sum(allocations.used) AS used
FROM allocations
WHERE allocations.resource_provider_id > ? AND allocations.resource_provider_id <= ? GROUP BY allocations.resource_provider_id, allocations.resource_class_id) AS counted ON counted.resource_provider_id = inventories.resource_provider_id AND counted.resource_class_id = inventories.resource_class_id LEFT OUTER JOIN berth_usages ON berth_usages.resource_provider_id = inventories.resource_provider_id AND berth_usages.resource_class_id = inventories.resource_class_id
WHERE (berth_usages.used IS NULL OR berth_usages.used != CAST(coalesce(counted.used, ?) AS BIGINT)) AND inventories.resource_provider_id > ? AND inventories.resource_provider_id <= ?

-- store.usage_counts._OF_PART[1]
SELECT berth_usages.resource_provider_id, berth_usages.resource_class_id, berth_usages.used
FROM berth_usages
WHERE NOT (EXISTS (SELECT *
FROM inventories
WHERE inventories.resource_provider_id = berth_usages.resource_provider_id AND inventories.resource_class_id = berth_usages.resource_class_id)) AND berth_usages.resource_provider_id > ? AND berth_usages.resource_provider_id <= ?

-- store.usage_counts._OF_SOME[0]
SELECT inventories.resource_provider_id, inventories.resource_class_id, berth_usages.used, CAST(coalesce(counted.used, ?) AS BIGINT) AS counted
FROM inventories LEFT OUTER JOIN (SELECT allocations.resource_provider_id AS resource_provider_id, allocations.resource_class_id AS resource_class_id, sum(allocations.used) AS used
FROM allocations
WHERE allocations.resource_provider_id IN (__[POSTCOMPILE_providers]) GROUP BY allocations.resource_provider_id, allocations.resource_class_id) AS counted ON counted.resource_provider_id = inventories.resource_provider_id AND counted.resource_class_id = inventories.resource_class_id LEFT OUTER JOIN berth_usages ON berth_usages.resource_provider_id = inventories.resource_provider_id AND berth_usages.resource_class_id = inventories.resource_class_id
WHERE (berth_usages.used IS NULL OR berth_usages.used != CAST(coalesce(counted.used, ?) AS BIGINT)) AND inventories.resource_provider_id IN (__[POSTCOMPILE_providers])

-- store.usage_counts._OF_SOME[1]
SELECT berth_usages.resource_provider_id, berth_usages.resource_class_id, berth_usages.used
FROM berth_usages
WHERE NOT (EXISTS (SELECT *
FROM inventories
WHERE inventories.resource_provider_id = berth_usages.resource_provider_id AND inventories.resource_class_id = berth_usages.resource_class_id)) AND berth_usages.resource_provider_id IN (__[POSTCOMPILE_providers])

-- store.usages._ANY
SELECT berth_project_usages.writer_id
FROM berth_project_usages
 LIMIT ? OFFSET ?

-- store.usages._CORRECT[0]
UPDATE berth_project_usages SET used_0=? WHERE berth_project_usages.project_id = ? AND berth_project_usages.user_id = ? AND berth_project_usages.consumer_type_id = ? AND berth_project_usages.first_class = ? AND berth_project_usages.writer_id = ? AND berth_project_usages.used_0 = ?

-- store.usages._CORRECT[1]
UPDATE berth_project_usages SET used_1=? WHERE berth_project_usages.project_id = ? AND berth_project_usages.user_id = ? AND berth_project_usages.consumer_type_id = ? AND berth_project_usages.first_class = ? AND berth_project_usages.writer_id = ? AND berth_project_usages.used_1 = ?

-- store.usages._CORRECT[2]
UPDATE berth_project_usages SET used_2=? WHERE berth_project_usages.project_id = ? AND berth_project_usages.user_id = ? AND berth_project_usages.consumer_type_id = ? AND berth_project_usages.first_class = ? AND berth_project_usages.writer_id = ? AND berth_project_usages.used_2 = ?

-- store.usages._CORRECT[3]
UPDATE berth_project_usages SET used_3=? WHERE berth_project_usages.project_id = ? AND berth_project_usages.user_id = ? AND berth_project_usages.consumer_type_id = ? AND berth_project_usages.first_class = ? AND berth_project_usages.writer_id = ? AND berth_project_usages.used_3 = ?

-- store.usages._COUNT_OF
SELECT consumers.project_id, consumers.user_id, coalesce(consumers.consumer_type_id, 0) AS coalesce_1, -1, count(*) AS count_1
FROM consumers
WHERE (EXISTS (SELECT *
FROM allocations
WHERE allocations.consumer_id = consumers.uuid)) AND consumers.uuid IN (__[POSTCOMPILE_consumers]) GROUP BY consumers.project_id, consumers.user_id, coalesce(consumers.consumer_type_id, 0)

-- store.usages._FILL
INSERT INTO berth_project_usages (project_id, user_id, consumer_type_id, first_class, writer_id, used_0, used_1, used_2, used_3) SELECT placed.project_id, placed.user_id, placed.consumer_type_id, placed.first_class, 0, sum(CASE WHEN (placed.place = 0) THEN placed.counted ELSE 0 END) AS sum_1, sum(CASE WHEN (placed.place = 1) THEN placed.counted ELSE 0 END) AS sum_2, sum(CASE WHEN (placed.place = 2) THEN placed.counted ELSE 0 END) AS sum_3, sum(CASE WHEN (placed.place = 3) THEN placed.counted ELSE 0 END) AS sum_4
FROM (SELECT counted.project_id AS project_id, counted.user_id AS user_id, counted.coalesce_1 AS consumer_type_id, counted.resource_class_id - (counted.resource_class_id - ?) % 4 AS first_class, (counted.resource_class_id - ?) % 4 AS place, counted.sum_5 AS counted
FROM (SELECT consumers.project_id AS project_id, consumers.user_id AS user_id, coalesce(consumers.consumer_type_id, 0) AS coalesce_1, allocations.resource_class_id AS resource_class_id, sum(allocations.used) AS sum_5
FROM allocations JOIN consumers ON consumers.uuid = allocations.consumer_id GROUP BY consumers.project_id, consumers.user_id, coalesce(consumers.consumer_type_id, 0), allocations.resource_class_id UNION ALL SELECT consumers.project_id AS project_id, consumers.user_id AS user_id, coalesce(consumers.consumer_type_id, 0) AS coalesce_1, -1, count(*) AS count_1
FROM consumers
WHERE EXISTS (SELECT *
FROM allocations
WHERE allocations.consumer_id = consumers.uuid) GROUP BY consumers.project_id, consumers.user_id, coalesce(consumers.consumer_type_id, 0)) AS counted) AS placed GROUP BY placed.project_id, placed.user_id, placed.consumer_type_id, placed.first_class

-- store.usages._MARKED
SELECT CAST(sum(berth_project_usages.used_0) AS BIGINT) AS sum_1
FROM berth_project_usages
WHERE berth_project_usages.project_id = ?
HAVING sum(berth_project_usages.used_0) != 0

-- store.usages._OF_PROJECT
SELECT consumer_types.name, sums.first_class, resource_classes.id, resource_classes.name AS class_name, sums.used_0, sums.used_1, sums.used_2, sums.used_3
FROM (SELECT berth_project_usages.consumer_type_id AS consumer_type_id, berth_project_usages.first_class AS first_class, sum(berth_project_usages.used_0) AS used_0, sum(berth_project_usages.used_1) AS used_1, sum(berth_project_usages.used_2) AS used_2, sum(berth_project_usages.used_3) AS used_3
FROM berth_project_usages JOIN projects ON projects.id = berth_project_usages.project_id
WHERE projects.external_id = ? GROUP BY berth_project_usages.consumer_type_id, berth_project_usages.first_class) AS sums JOIN resource_classes ON resource_classes.id BETWEEN sums.first_class AND sums.first_class + 3 LEFT OUTER JOIN consumer_types ON consumer_types.id = sums.consumer_type_id UNION ALL SELECT NULL AS anon_1, -2, -2, NULL AS anon__1, sum(berth_project_usages.used_0) AS sum_1, sum(berth_project_usages.used_1) AS sum_2, sum(berth_project_usages.used_2) AS sum_3, sum(berth_project_usages.used_3) AS sum_4
FROM berth_project_usages
WHERE berth_project_usages.project_id = ?
HAVING sum(berth_project_usages.used_0) != 0

-- store.usages._OF_USER
SELECT consumer_types.name, sums.first_class, resource_classes.id, resource_classes.name AS class_name, sums.used_0, sums.used_1, sums.used_2, sums.used_3
FROM (SELECT berth_project_usages.consumer_type_id AS consumer_type_id, berth_project_usages.first_class AS first_class, sum(berth_project_usages.used_0) AS used_0, sum(berth_project_usages.used_1) AS used_1, sum(berth_project_usages.used_2) AS used_2, sum(berth_project_usages.used_3) AS used_3
FROM berth_project_usages JOIN projects ON projects.id = berth_project_usages.project_id
WHERE projects.external_id = ? AND berth_project_usages.user_id IN (SELECT users.id
FROM users
WHERE users.external_id = ?) GROUP BY berth_project_usages.consumer_type_id, berth_project_usages.first_class) AS sums JOIN resource_classes ON resource_classes.id BETWEEN sums.first_class AND sums.first_class + 3 LEFT OUTER JOIN consumer_types ON consumer_types.id = sums.consumer_type_id UNION ALL SELECT NULL AS anon_1, -2, -2, NULL AS anon__1, sum(berth_project_usages.used_0) AS sum_1, sum(berth_project_usages.used_1) AS sum_2, sum(berth_project_usages.used_2) AS sum_3, sum(berth_project_usages.used_3) AS sum_4
FROM berth_project_usages
WHERE berth_project_usages.project_id = ?
HAVING sum(berth_project_usages.used_0) != 0

-- store.usages._USED_BY
SELECT consumers.project_id, consumers.user_id, coalesce(consumers.consumer_type_id, 0) AS coalesce_1, allocations.resource_class_id, sum(allocations.used) AS sum_1, allocations.resource_provider_id
FROM allocations JOIN consumers ON consumers.uuid = allocations.consumer_id
WHERE consumers.uuid IN (__[POSTCOMPILE_consumers]) GROUP BY consumers.project_id, consumers.user_id, coalesce(consumers.consumer_type_id, 0), allocations.resource_class_id, allocations.resource_provider_id

-- store.usages._WRONG_PART
SELECT anon_1.project_id, anon_1.user_id, anon_1.consumer_type_id, anon_1.resource_class_id, CAST(sum(anon_1.stored) AS BIGINT) AS stored, CAST(sum(anon_1.counted) AS BIGINT) AS counted, CAST(sum(anon_1.corrected) AS BIGINT) AS corrected
FROM (SELECT berth_project_usages.project_id AS project_id, berth_project_usages.user_id AS user_id, berth_project_usages.consumer_type_id AS consumer_type_id, berth_project_usages.first_class + 0 AS resource_class_id, berth_project_usages.used_0 AS stored, 0 AS counted, CASE WHEN (berth_project_usages.writer_id = ?) THEN berth_project_usages.used_0 ELSE 0 END AS corrected
FROM berth_project_usages UNION ALL SELECT berth_project_usages.project_id AS project_id, berth_project_usages.user_id AS user_id, berth_project_usages.consumer_type_id AS consumer_type_id, berth_project_usages.first_class + 1 AS resource_class_id, berth_project_usages.used_1 AS stored, 0 AS counted, CASE WHEN (berth_project_usages.writer_id = ?) THEN berth_project_usages.used_1 ELSE 0 END AS corrected
FROM berth_project_usages UNION ALL SELECT berth_project_usages.project_id AS project_id, berth_project_usages.user_id AS user_id, berth_project_usages.consumer_type_id AS consumer_type_id, berth_project_usages.first_class + 2 AS resource_class_id, berth_project_usages.used_2 AS stored, 0 AS counted, CASE WHEN (berth_project_usages.writer_id = ?) THEN berth_project_usages.used_2 ELSE 0 END AS corrected
FROM berth_project_usages UNION ALL SELECT berth_project_usages.project_id AS project_id, berth_project_usages.user_id AS user_id, berth_project_usages.consumer_type_id AS consumer_type_id, berth_project_usages.first_class + 3 AS resource_class_id, berth_project_usages.used_3 AS stored, 0 AS counted, CASE WHEN (berth_project_usages.writer_id = ?) THEN berth_project_usages.used_3 ELSE 0 END AS corrected
FROM berth_project_usages UNION ALL SELECT counted.project_id AS project_id, counted.user_id AS user_id, counted.coalesce_1 AS coalesce_1, counted.resource_class_id AS resource_class_id, 0, counted.sum_1 AS sum_1, 0
FROM (SELECT consumers.project_id AS project_id, consumers.user_id AS user_id, coalesce(consumers.consumer_type_id, 0) AS coalesce_1, allocations.resource_class_id AS resource_class_id, sum(allocations.used) AS sum_1
FROM allocations JOIN consumers ON consumers.uuid = allocations.consumer_id GROUP BY consumers.project_id, consumers.user_id, coalesce(consumers.consumer_type_id, 0), allocations.resource_class_id UNION ALL SELECT consumers.project_id AS project_id, consumers.user_id AS user_id, coalesce(consumers.consumer_type_id, 0) AS coalesce_1, -1, count(*) AS count_1
FROM consumers
WHERE EXISTS (SELECT *
FROM allocations
WHERE allocations.consumer_id = consumers.uuid) GROUP BY consumers.project_id, consumers.user_id, coalesce(consumers.consumer_type_id, 0)) AS counted) AS anon_1 GROUP BY anon_1.project_id, anon_1.user_id, anon_1.consumer_type_id, anon_1.resource_class_id
HAVING sum(anon_1.stored) != sum(anon_1.counted)
 LIMIT ? OFFSET ?

-- store.usages._count
SELECT consumers.project_id, consumers.user_id, coalesce(consumers.consumer_type_id, 0) AS coalesce_1, -1, count(*) AS count_1
FROM consumers
WHERE EXISTS (SELECT *
FROM allocations
WHERE allocations.consumer_id = consumers.uuid) GROUP BY consumers.project_id, consumers.user_id, coalesce(consumers.consumer_type_id, 0)

-- store.usages._used
SELECT consumers.project_id, consumers.user_id, coalesce(consumers.consumer_type_id, 0) AS coalesce_1, allocations.resource_class_id, sum(allocations.used) AS sum_1
FROM allocations JOIN consumers ON consumers.uuid = allocations.consumer_id GROUP BY consumers.project_id, consumers.user_id, coalesce(consumers.consumer_type_id, 0), allocations.resource_class_id

-- upkeep.copying.run._REFER
UPDATE resource_providers SET root_provider_id=?, parent_provider_id=? WHERE resource_providers.id = ?

-- upkeep.integrity.consumers._FORGET
DELETE FROM consumers WHERE consumers.id = ? AND consumers.generation = ? AND NOT (EXISTS (SELECT *
FROM allocations
WHERE allocations.consumer_id = consumers.uuid))

-- upkeep.integrity.consumers._IDLE
SELECT consumers.id AS consumer, consumers.uuid, consumers.generation AS seen
FROM consumers
WHERE consumers.generation >= ? AND NOT (EXISTS (SELECT *
FROM allocations
WHERE allocations.consumer_id = consumers.uuid))

-- upkeep.integrity.consumers._RECORDS
SELECT consumers.id AS consumer, consumers.uuid, consumers.generation AS seen
FROM consumers

-- upkeep.integrity.consumers._RESTART
UPDATE consumers SET updated_at=?, generation=? WHERE consumers.id = ? AND consumers.generation < ?

-- upkeep.integrity.consumers._UNRECORDED
SELECT DISTINCT allocations.consumer_id
FROM allocations
WHERE NOT (EXISTS (SELECT *
FROM consumers
WHERE consumers.uuid = allocations.consumer_id))

-- upkeep.integrity.own._FORGET_DRAINED
DELETE FROM berth_drained WHERE berth_drained.drain_id = ? AND berth_drained.provider_id = ? AND (NOT (EXISTS (SELECT *
FROM berth_drains
WHERE berth_drains.id = berth_drained.drain_id)) OR NOT (EXISTS (SELECT *
FROM resource_providers
WHERE berth_drained.provider_id = resource_providers.id AND berth_drained.provider_uuid = resource_providers.uuid)))

-- upkeep.integrity.own._FORGET_LEASE
DELETE FROM berth_leases WHERE berth_leases.id = ? AND NOT (EXISTS (SELECT *
FROM consumers
WHERE berth_leases.consumer_uuid = consumers.uuid AND berth_leases.consumer_id = consumers.id AND berth_leases.consumer_created_at IS consumers.created_at AND berth_leases.consumer_generation = consumers.generation))

-- upkeep.integrity.own._FORGET_NAME
DELETE FROM berth_consumer_names WHERE berth_consumer_names.id = ? AND NOT (EXISTS (SELECT *
FROM consumers
WHERE consumers.uuid = berth_consumer_names.consumer_uuid))

-- upkeep.integrity.own._FORGET_NOTES
DELETE FROM berth_journal WHERE berth_journal.writer_id = ? AND NOT (EXISTS (SELECT *
FROM berth_writer
WHERE berth_writer.id = berth_journal.writer_id AND berth_writer.seq >= berth_journal.seq))

-- upkeep.integrity.own._FORGET_PLACEMENT
DELETE FROM berth_placements WHERE berth_placements.id = ?

-- upkeep.integrity.stock._INVENTORIES
SELECT inventories.id AS "row", inventories.resource_provider_id AS provider, named_provider.uuid AS provider_uuid, named_provider.name AS provider_name, inventories.resource_class_id AS class_id, named_class.name AS class_name
FROM inventories LEFT OUTER JOIN resource_providers AS named_provider ON named_provider.id = inventories.resource_provider_id LEFT OUTER JOIN resource_classes AS named_class ON named_class.id = inventories.resource_class_id

-- upkeep.integrity.trees._BAD_GENERATIONS
SELECT resource_providers.generation, resource_providers.id AS provider, named_provider.uuid AS provider_uuid, named_provider.name AS provider_name
FROM resource_providers LEFT OUTER JOIN resource_providers AS named_provider ON named_provider.id = resource_providers.id
WHERE resource_providers.generation IS NULL OR resource_providers.generation < ?

-- upkeep.integrity.trees._RESTART
UPDATE resource_providers SET updated_at=?, generation=? WHERE resource_providers.id = ? AND (resource_providers.generation IS NULL OR resource_providers.generation < ?)

-- upkeep.integrity.trees._SET_ROOT
UPDATE resource_providers SET updated_at=?, root_provider_id=? WHERE resource_providers.id = ? AND coalesce(resource_providers.root_provider_id, ?) = ?

-- upkeep.left_state._CLOCK
SELECT berth_writer.id, berth_writer.seq
FROM berth_writer
WHERE berth_writer.seq > ? ORDER BY berth_writer.id

-- upkeep.left_state._FLEET[0]
SELECT count(*) AS count_1, coalesce(sum(CAST(resource_providers.id AS BIGINT)), ?) AS coalesce_1, coalesce(sum(CAST(resource_providers.generation AS BIGINT)), ?) AS coalesce_3, coalesce(sum(CAST(resource_providers.parent_provider_id AS BIGINT)), ?) AS coalesce_5, coalesce(sum(CAST(CAST(round((julianday(substr(coalesce(resource_providers.updated_at, resource_providers.created_at), 1, 19)) - 2440587.5) * 86400) AS INTEGER) AS BIGINT)), ?) AS coalesce_7
FROM resource_providers

-- upkeep.left_state._FLEET[1]
SELECT count(*) AS count_1, coalesce(sum(CAST(inventories.id AS BIGINT)), ?) AS coalesce_1, coalesce(sum(CAST(inventories.total AS BIGINT)), ?) AS coalesce_3, coalesce(sum(CAST(CAST(round((julianday(substr(coalesce(inventories.updated_at, inventories.created_at), 1, 19)) - 2440587.5) * 86400) AS INTEGER) AS BIGINT)), ?) AS coalesce_5
FROM inventories

-- upkeep.left_state._FLEET[2]
SELECT count(*) AS count_1, coalesce(sum(CAST(resource_provider_traits.trait_id AS BIGINT)), ?) AS coalesce_1
FROM resource_provider_traits

-- upkeep.left_state._FLEET[3]
SELECT count(*) AS count_1, coalesce(sum(CAST(resource_provider_aggregates.aggregate_id AS BIGINT)), ?) AS coalesce_1, coalesce(sum(CAST(CAST(resource_provider_aggregates.aggregate_id AS BIGINT) * resource_provider_aggregates.resource_provider_id AS BIGINT)), ?) AS coalesce_3
FROM resource_provider_aggregates

-- upkeep.left_state._FLEET[4]
SELECT count(*) AS count_1, coalesce(sum(CAST(placement_aggregates.id AS BIGINT)), ?) AS coalesce_1
FROM placement_aggregates

-- upkeep.left_state._FLEET[5]
SELECT count(*) AS count_1, coalesce(sum(CAST(traits.id AS BIGINT)), ?) AS coalesce_1, coalesce(sum(CAST(CAST(round((julianday(substr(coalesce(traits.updated_at, traits.created_at), 1, 19)) - 2440587.5) * 86400) AS INTEGER) AS BIGINT)), ?) AS coalesce_3
FROM traits

-- upkeep.left_state._FLEET[6]
SELECT count(*) AS count_1, coalesce(sum(CAST(resource_classes.id AS BIGINT)), ?) AS coalesce_1, coalesce(sum(CAST(CAST(round((julianday(substr(coalesce(resource_classes.updated_at, resource_classes.created_at), 1, 19)) - 2440587.5) * 86400) AS INTEGER) AS BIGINT)), ?) AS coalesce_3
FROM resource_classes

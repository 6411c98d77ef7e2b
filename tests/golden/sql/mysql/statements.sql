-- store.aggregates._BY_SPELLING
SELECT placement_aggregates.uuid, placement_aggregates.id
FROM placement_aggregates
WHERE placement_aggregates.uuid IN (__[POSTCOMPILE_spellings])

-- store.aggregates._LEAVE
DELETE FROM resource_provider_aggregates WHERE resource_provider_aggregates.resource_provider_id = %s

-- store.aggregates._LEAVE_OTHERS
DELETE FROM resource_provider_aggregates WHERE resource_provider_aggregates.resource_provider_id = %s AND (resource_provider_aggregates.aggregate_id NOT IN (__[POSTCOMPILE_aggregates]))

-- store.aggregates._PROVIDER_AND_AGGREGATES
SELECT 1, convert(resource_providers.uuid using utf8mb4) AS common_text_1, resource_providers.id, resource_providers.generation
FROM resource_providers
WHERE resource_providers.uuid = %s UNION ALL SELECT 0, convert(placement_aggregates.uuid using utf8mb4) AS common_text_2, placement_aggregates.id, NULL AS anon_1
FROM placement_aggregates
WHERE placement_aggregates.uuid IN (__[POSTCOMPILE_spellings])

-- store.aggregates._RESPELL
UPDATE placement_aggregates SET updated_at=%s, uuid=%s WHERE placement_aggregates.id = %s AND placement_aggregates.uuid = %s

-- store.aggregates._SPELL
UPDATE placement_aggregates SET uuid=%s WHERE placement_aggregates.uuid = %s

-- store.allocations._OF_CONSUMER
SELECT resource_providers.uuid, coalesce(resource_providers.generation, %s) AS coalesce_1, resource_classes.name, allocations.used, allocations.created_at, projects.external_id, users.external_id AS external_id_1, consumers.generation, consumer_types.name AS name_1
FROM allocations INNER JOIN resource_providers ON resource_providers.id = allocations.resource_provider_id INNER JOIN resource_classes ON resource_classes.id = allocations.resource_class_id INNER JOIN consumers ON consumers.uuid = allocations.consumer_id INNER JOIN projects ON projects.id = consumers.project_id INNER JOIN users ON users.id = consumers.user_id LEFT OUTER JOIN consumer_types ON consumer_types.id = consumers.consumer_type_id
WHERE allocations.consumer_id = %s ORDER BY allocations.id

-- store.allocations._OF_CONSUMERS
SELECT allocations.resource_provider_id, allocations.resource_class_id, allocations.used
FROM allocations
WHERE allocations.consumer_id IN (__[POSTCOMPILE_consumers])

-- store.allocations._OF_PROVIDER
SELECT consumers.uuid, consumers.generation, resource_classes.name, allocations.used, allocations.created_at, resource_providers.uuid AS uuid_1, coalesce(resource_providers.generation, %s) AS coalesce_1
FROM resource_providers LEFT OUTER JOIN allocations ON allocations.resource_provider_id = resource_providers.id LEFT OUTER JOIN resource_classes ON resource_classes.id = allocations.resource_class_id LEFT OUTER JOIN consumers ON consumers.uuid = allocations.consumer_id
WHERE resource_providers.uuid = %s ORDER BY allocations.id

-- store.allocations._OF_PROVIDERS
SELECT allocations.resource_provider_id, allocations.consumer_id, allocations.resource_class_id, allocations.used
FROM allocations
WHERE allocations.resource_provider_id IN (__[POSTCOMPILE_providers])

-- store.changes._COUNTED
SELECT berth_journal.provider_id, count(*) AS count_1, min(CAST(berth_journal.usage_only AS SIGNED INTEGER)) AS min_1, max(berth_journal.gone_uuid) AS max_1
FROM berth_journal
WHERE berth_journal.writer_id = %s AND berth_journal.seq > %s AND berth_journal.seq <= %s GROUP BY berth_journal.provider_id

-- store.changes._DELETIONS
SELECT berth_journal.provider_id, berth_journal.gone_uuid
FROM berth_journal
WHERE berth_journal.writer_id = %s AND berth_journal.seq > %s AND berth_journal.provider_id IN (__[POSTCOMPILE_providers]) AND berth_journal.gone_uuid IS NOT NULL

-- store.changes._ONE_BY_ONE
SELECT berth_journal.provider_id, berth_journal.created_at, berth_journal.seq, berth_journal.gone_uuid
FROM berth_journal
WHERE berth_journal.writer_id = %s AND berth_journal.seq > %s AND berth_journal.seq <= %s AND berth_journal.provider_id IN (__[POSTCOMPILE_providers])

-- store.changes._TRIMMED
SELECT berth_writer.id, berth_writer.trimmed_seq
FROM berth_writer

-- store.claim_reads._FACTS
SELECT 1, convert(consumers.uuid using utf8mb4) AS common_text_1, consumers.id, consumers.generation, consumers.consumer_type_id, consumers.project_id, consumers.user_id, (SELECT berth_consumer_names.id
FROM berth_consumer_names
WHERE berth_consumer_names.consumer_uuid = consumers.uuid) AS anon_1, (SELECT CASE WHEN (berth_leases.consumer_uuid = consumers.uuid AND berth_leases.consumer_id = consumers.id AND berth_leases.consumer_created_at <=> consumers.created_at AND berth_leases.consumer_generation = consumers.generation) THEN 1 ELSE 0 END AS anon_3
FROM berth_leases
WHERE berth_leases.consumer_uuid = consumers.uuid) AS anon_2
FROM consumers
WHERE consumers.uuid IN (__[POSTCOMPILE_consumers]) UNION ALL SELECT 2, convert(allocations.consumer_id using utf8mb4) AS common_text_2, allocations.resource_provider_id, (SELECT resource_providers.generation
FROM resource_providers
WHERE resource_providers.id = allocations.resource_provider_id) AS anon_4, (SELECT max(berth_usages.generation) AS max_1
FROM berth_usages
WHERE berth_usages.resource_provider_id = allocations.resource_provider_id) AS anon_5, allocations.resource_class_id, allocations.used, NULL AS anon_6, NULL AS anon__1
FROM allocations
WHERE allocations.consumer_id IN (__[POSTCOMPILE_consumers]) UNION ALL SELECT 0, convert(resource_providers.uuid using utf8mb4) AS common_text_3, resource_providers.id, resource_providers.generation, (SELECT max(berth_usages.generation) AS max_2
FROM berth_usages
WHERE berth_usages.resource_provider_id = resource_providers.id) AS anon_7, NULL AS anon_6, NULL AS anon__1, NULL AS anon__2, NULL AS anon__3
FROM resource_providers
WHERE resource_providers.uuid IN (__[POSTCOMPILE_providers]) UNION ALL SELECT 3, convert(projects.external_id using utf8mb4) AS common_text_4, projects.id, NULL AS anon_6, NULL AS anon__1, NULL AS anon__2, NULL AS anon__3, NULL AS anon__4, NULL AS anon__5
FROM projects
WHERE projects.external_id IN (__[POSTCOMPILE_projects]) UNION ALL SELECT 4, convert(users.external_id using utf8mb4) AS common_text_5, users.id, NULL AS anon_6, NULL AS anon__1, NULL AS anon__2, NULL AS anon__3, NULL AS anon__4, NULL AS anon__5
FROM users
WHERE users.external_id IN (__[POSTCOMPILE_users]) UNION ALL SELECT 5, convert(consumer_types.name using utf8mb4) AS common_text_6, consumer_types.id, NULL AS anon_6, NULL AS anon__1, NULL AS anon__2, NULL AS anon__3, NULL AS anon__4, NULL AS anon__5
FROM consumer_types
WHERE consumer_types.name IN (__[POSTCOMPILE_types])

-- store.claim_reads._FACTS_WITH_CLASSES
SELECT 1, convert(consumers.uuid using utf8mb4) AS common_text_1, consumers.id, consumers.generation, consumers.consumer_type_id, consumers.project_id, consumers.user_id, (SELECT berth_consumer_names.id
FROM berth_consumer_names
WHERE berth_consumer_names.consumer_uuid = consumers.uuid) AS anon_1, (SELECT CASE WHEN (berth_leases.consumer_uuid = consumers.uuid AND berth_leases.consumer_id = consumers.id AND berth_leases.consumer_created_at <=> consumers.created_at AND berth_leases.consumer_generation = consumers.generation) THEN 1 ELSE 0 END AS anon_3
FROM berth_leases
WHERE berth_leases.consumer_uuid = consumers.uuid) AS anon_2
FROM consumers
WHERE consumers.uuid IN (__[POSTCOMPILE_consumers]) UNION ALL SELECT 2, convert(allocations.consumer_id using utf8mb4) AS common_text_2, allocations.resource_provider_id, (SELECT resource_providers.generation
FROM resource_providers
WHERE resource_providers.id = allocations.resource_provider_id) AS anon_4, (SELECT max(berth_usages.generation) AS max_1
FROM berth_usages
WHERE berth_usages.resource_provider_id = allocations.resource_provider_id) AS anon_5, allocations.resource_class_id, allocations.used, NULL AS anon_6, NULL AS anon__1
FROM allocations
WHERE allocations.consumer_id IN (__[POSTCOMPILE_consumers]) UNION ALL SELECT 0, convert(resource_providers.uuid using utf8mb4) AS common_text_3, resource_providers.id, resource_providers.generation, (SELECT max(berth_usages.generation) AS max_2
FROM berth_usages
WHERE berth_usages.resource_provider_id = resource_providers.id) AS anon_7, NULL AS anon_6, NULL AS anon__1, NULL AS anon__2, NULL AS anon__3
FROM resource_providers
WHERE resource_providers.uuid IN (__[POSTCOMPILE_providers]) UNION ALL SELECT 3, convert(projects.external_id using utf8mb4) AS common_text_4, projects.id, NULL AS anon_6, NULL AS anon__1, NULL AS anon__2, NULL AS anon__3, NULL AS anon__4, NULL AS anon__5
FROM projects
WHERE projects.external_id IN (__[POSTCOMPILE_projects]) UNION ALL SELECT 4, convert(users.external_id using utf8mb4) AS common_text_5, users.id, NULL AS anon_6, NULL AS anon__1, NULL AS anon__2, NULL AS anon__3, NULL AS anon__4, NULL AS anon__5
FROM users
WHERE users.external_id IN (__[POSTCOMPILE_users]) UNION ALL SELECT 5, convert(consumer_types.name using utf8mb4) AS common_text_6, consumer_types.id, NULL AS anon_6, NULL AS anon__1, NULL AS anon__2, NULL AS anon__3, NULL AS anon__4, NULL AS anon__5
FROM consumer_types
WHERE consumer_types.name IN (__[POSTCOMPILE_types]) UNION ALL SELECT 6, convert(resource_classes.name using utf8mb4) AS common_text_7, resource_classes.id, NULL AS anon_6, NULL AS anon__1, NULL AS anon__2, NULL AS anon__3, NULL AS anon__4, NULL AS anon__5
FROM resource_classes
WHERE resource_classes.name IN (__[POSTCOMPILE_classes])

-- store.claim_reads._FACTS_WITH_HOLDERS
SELECT 1, convert(consumers.uuid using utf8mb4) AS common_text_1, consumers.id, consumers.generation, consumers.consumer_type_id, consumers.project_id, consumers.user_id, (SELECT berth_consumer_names.id
FROM berth_consumer_names
WHERE berth_consumer_names.consumer_uuid = consumers.uuid) AS anon_1, (SELECT CASE WHEN (berth_leases.consumer_uuid = consumers.uuid AND berth_leases.consumer_id = consumers.id AND berth_leases.consumer_created_at <=> consumers.created_at AND berth_leases.consumer_generation = consumers.generation) THEN 1 ELSE 0 END AS anon_3
FROM berth_leases
WHERE berth_leases.consumer_uuid = consumers.uuid) AS anon_2
FROM consumers
WHERE consumers.uuid IN (__[POSTCOMPILE_consumers]) UNION ALL SELECT 2, convert(allocations.consumer_id using utf8mb4) AS common_text_2, allocations.resource_provider_id, (SELECT resource_providers.generation
FROM resource_providers
WHERE resource_providers.id = allocations.resource_provider_id) AS anon_4, (SELECT max(berth_usages.generation) AS max_1
FROM berth_usages
WHERE berth_usages.resource_provider_id = allocations.resource_provider_id) AS anon_5, allocations.resource_class_id, allocations.used, NULL AS anon_6, NULL AS anon__1
FROM allocations
WHERE allocations.consumer_id IN (__[POSTCOMPILE_consumers]) UNION ALL SELECT 0, convert(resource_providers.uuid using utf8mb4) AS common_text_3, resource_providers.id, resource_providers.generation, (SELECT max(berth_usages.generation) AS max_2
FROM berth_usages
WHERE berth_usages.resource_provider_id = resource_providers.id) AS anon_7, NULL AS anon_6, NULL AS anon__1, NULL AS anon__2, NULL AS anon__3
FROM resource_providers
WHERE resource_providers.uuid IN (__[POSTCOMPILE_providers]) UNION ALL SELECT 3, convert(projects.external_id using utf8mb4) AS common_text_4, projects.id, NULL AS anon_6, NULL AS anon__1, NULL AS anon__2, NULL AS anon__3, NULL AS anon__4, NULL AS anon__5
FROM projects
WHERE projects.external_id IN (__[POSTCOMPILE_projects]) UNION ALL SELECT 4, convert(users.external_id using utf8mb4) AS common_text_5, users.id, NULL AS anon_6, NULL AS anon__1, NULL AS anon__2, NULL AS anon__3, NULL AS anon__4, NULL AS anon__5
FROM users
WHERE users.external_id IN (__[POSTCOMPILE_users]) UNION ALL SELECT 5, convert(consumer_types.name using utf8mb4) AS common_text_6, consumer_types.id, NULL AS anon_6, NULL AS anon__1, NULL AS anon__2, NULL AS anon__3, NULL AS anon__4, NULL AS anon__5
FROM consumer_types
WHERE consumer_types.name IN (__[POSTCOMPILE_types]) UNION ALL SELECT 6, convert(resource_classes.name using utf8mb4) AS common_text_7, resource_classes.id, NULL AS anon_6, NULL AS anon__1, NULL AS anon__2, NULL AS anon__3, NULL AS anon__4, NULL AS anon__5
FROM resource_classes
WHERE resource_classes.name IN (__[POSTCOMPILE_classes]) UNION ALL SELECT 3, convert(projects.external_id using utf8mb4) AS common_text_8, projects.id, NULL AS anon_6, NULL AS anon__1, NULL AS anon__2, NULL AS anon__3, NULL AS anon__4, NULL AS anon__5
FROM projects
WHERE projects.id IN (SELECT consumers.project_id
FROM consumers
WHERE consumers.uuid IN (__[POSTCOMPILE_consumers])) UNION ALL SELECT 4, convert(users.external_id using utf8mb4) AS common_text_9, users.id, NULL AS anon_6, NULL AS anon__1, NULL AS anon__2, NULL AS anon__3, NULL AS anon__4, NULL AS anon__5
FROM users
WHERE users.id IN (SELECT consumers.user_id
FROM consumers
WHERE consumers.uuid IN (__[POSTCOMPILE_consumers])) UNION ALL SELECT 7, convert(berth_consumer_names.name using utf8mb4) AS common_text_10, berth_consumer_names.id, NULL AS anon_6, NULL AS anon__1, NULL AS anon__2, NULL AS anon__3, NULL AS anon__4, NULL AS anon__5
FROM berth_consumer_names
WHERE berth_consumer_names.consumer_uuid IN (__[POSTCOMPILE_consumers])

-- store.claim_reads._RELEASE_FACTS
SELECT 1, convert(consumers.uuid using utf8mb4) AS common_text_1, consumers.id, consumers.generation, consumers.consumer_type_id, consumers.project_id, consumers.user_id, (SELECT berth_consumer_names.id
FROM berth_consumer_names
WHERE berth_consumer_names.consumer_uuid = consumers.uuid) AS anon_1, (SELECT CASE WHEN (berth_leases.consumer_uuid = consumers.uuid AND berth_leases.consumer_id = consumers.id AND berth_leases.consumer_created_at <=> consumers.created_at AND berth_leases.consumer_generation = consumers.generation) THEN 1 ELSE 0 END AS anon_3
FROM berth_leases
WHERE berth_leases.consumer_uuid = consumers.uuid) AS anon_2
FROM consumers
WHERE consumers.uuid IN (__[POSTCOMPILE_consumers]) UNION ALL SELECT 2, convert(allocations.consumer_id using utf8mb4) AS common_text_2, allocations.resource_provider_id, (SELECT resource_providers.generation
FROM resource_providers
WHERE resource_providers.id = allocations.resource_provider_id) AS anon_4, (SELECT max(berth_usages.generation) AS max_1
FROM berth_usages
WHERE berth_usages.resource_provider_id = allocations.resource_provider_id) AS anon_5, allocations.resource_class_id, allocations.used, NULL AS anon_6, NULL AS anon__1
FROM allocations
WHERE allocations.consumer_id IN (__[POSTCOMPILE_consumers])

-- store.claim_reads._RELEASE_FACTS_WITH_HOLDERS
SELECT 1, convert(consumers.uuid using utf8mb4) AS common_text_1, consumers.id, consumers.generation, consumers.consumer_type_id, consumers.project_id, consumers.user_id, (SELECT berth_consumer_names.id
FROM berth_consumer_names
WHERE berth_consumer_names.consumer_uuid = consumers.uuid) AS anon_1, (SELECT CASE WHEN (berth_leases.consumer_uuid = consumers.uuid AND berth_leases.consumer_id = consumers.id AND berth_leases.consumer_created_at <=> consumers.created_at AND berth_leases.consumer_generation = consumers.generation) THEN 1 ELSE 0 END AS anon_3
FROM berth_leases
WHERE berth_leases.consumer_uuid = consumers.uuid) AS anon_2
FROM consumers
WHERE consumers.uuid IN (__[POSTCOMPILE_consumers]) UNION ALL SELECT 2, convert(allocations.consumer_id using utf8mb4) AS common_text_2, allocations.resource_provider_id, (SELECT resource_providers.generation
FROM resource_providers
WHERE resource_providers.id = allocations.resource_provider_id) AS anon_4, (SELECT max(berth_usages.generation) AS max_1
FROM berth_usages
WHERE berth_usages.resource_provider_id = allocations.resource_provider_id) AS anon_5, allocations.resource_class_id, allocations.used, NULL AS anon_6, NULL AS anon__1
FROM allocations
WHERE allocations.consumer_id IN (__[POSTCOMPILE_consumers]) UNION ALL SELECT 3, convert(projects.external_id using utf8mb4) AS common_text_3, projects.id, NULL AS anon_6, NULL AS anon__1, NULL AS anon__2, NULL AS anon__3, NULL AS anon__4, NULL AS anon__5
FROM projects
WHERE projects.id IN (SELECT consumers.project_id
FROM consumers
WHERE consumers.uuid IN (__[POSTCOMPILE_consumers])) UNION ALL SELECT 4, convert(users.external_id using utf8mb4) AS common_text_4, users.id, NULL AS anon_6, NULL AS anon__1, NULL AS anon__2, NULL AS anon__3, NULL AS anon__4, NULL AS anon__5
FROM users
WHERE users.id IN (SELECT consumers.user_id
FROM consumers
WHERE consumers.uuid IN (__[POSTCOMPILE_consumers])) UNION ALL SELECT 7, convert(berth_consumer_names.name using utf8mb4) AS common_text_5, berth_consumer_names.id, NULL AS anon_6, NULL AS anon__1, NULL AS anon__2, NULL AS anon__3, NULL AS anon__4, NULL AS anon__5
FROM berth_consumer_names
WHERE berth_consumer_names.consumer_uuid IN (__[POSTCOMPILE_consumers])

-- store.claim_reads._ROOMS
SELECT inventories.resource_provider_id, inventories.resource_class_id, berth_usages.used, berth_usages.generation, resource_providers.generation AS generation_1, inventories.total, inventories.reserved, inventories.min_unit, inventories.max_unit, inventories.step_size, inventories.allocation_ratio
FROM inventories INNER JOIN berth_usages ON berth_usages.resource_provider_id = inventories.resource_provider_id AND berth_usages.resource_class_id = inventories.resource_class_id INNER JOIN resource_providers ON resource_providers.id = inventories.resource_provider_id
WHERE inventories.resource_provider_id IN (__[POSTCOMPILE_providers])

-- store.claim_reads._named_by_claim[0]
SELECT 0, convert(resource_providers.uuid using utf8mb4) AS common_text_1, resource_providers.id, resource_providers.generation, (SELECT max(berth_usages.generation) AS max_1
FROM berth_usages
WHERE berth_usages.resource_provider_id = resource_providers.id) AS anon_1, NULL AS anon_2, NULL AS anon__1, NULL AS anon__2, NULL AS anon__3
FROM resource_providers
WHERE resource_providers.uuid IN (__[POSTCOMPILE_providers])

-- store.claim_reads._named_by_claim[1]
SELECT 3, convert(projects.external_id using utf8mb4) AS common_text_1, projects.id, NULL AS anon_1, NULL AS anon__1, NULL AS anon__2, NULL AS anon__3, NULL AS anon__4, NULL AS anon__5
FROM projects
WHERE projects.external_id IN (__[POSTCOMPILE_projects])

-- store.claim_reads._named_by_claim[2]
SELECT 4, convert(users.external_id using utf8mb4) AS common_text_1, users.id, NULL AS anon_1, NULL AS anon__1, NULL AS anon__2, NULL AS anon__3, NULL AS anon__4, NULL AS anon__5
FROM users
WHERE users.external_id IN (__[POSTCOMPILE_users])

-- store.claim_reads._named_by_claim[3]
SELECT 5, convert(consumer_types.name using utf8mb4) AS common_text_1, consumer_types.id, NULL AS anon_1, NULL AS anon__1, NULL AS anon__2, NULL AS anon__3, NULL AS anon__4, NULL AS anon__5
FROM consumer_types
WHERE consumer_types.name IN (__[POSTCOMPILE_types])

-- store.claim_reads._named_classes_of_claim
SELECT 6, convert(resource_classes.name using utf8mb4) AS common_text_1, resource_classes.id, NULL AS anon_1, NULL AS anon__1, NULL AS anon__2, NULL AS anon__3, NULL AS anon__4, NULL AS anon__5
FROM resource_classes
WHERE resource_classes.name IN (__[POSTCOMPILE_classes])

-- store.claim_reads._of_consumers[0]
SELECT 1, convert(consumers.uuid using utf8mb4) AS common_text_1, consumers.id, consumers.generation, consumers.consumer_type_id, consumers.project_id, consumers.user_id, (SELECT berth_consumer_names.id
FROM berth_consumer_names
WHERE berth_consumer_names.consumer_uuid = consumers.uuid) AS anon_1, (SELECT CASE WHEN (berth_leases.consumer_uuid = consumers.uuid AND berth_leases.consumer_id = consumers.id AND berth_leases.consumer_created_at <=> consumers.created_at AND berth_leases.consumer_generation = consumers.generation) THEN 1 ELSE 0 END AS anon_3
FROM berth_leases
WHERE berth_leases.consumer_uuid = consumers.uuid) AS anon_2
FROM consumers
WHERE consumers.uuid IN (__[POSTCOMPILE_consumers])

-- store.claim_reads._of_consumers[1]
SELECT 2, convert(allocations.consumer_id using utf8mb4) AS common_text_1, allocations.resource_provider_id, (SELECT resource_providers.generation
FROM resource_providers
WHERE resource_providers.id = allocations.resource_provider_id) AS anon_1, (SELECT max(berth_usages.generation) AS max_1
FROM berth_usages
WHERE berth_usages.resource_provider_id = allocations.resource_provider_id) AS anon_2, allocations.resource_class_id, allocations.used, NULL AS anon_3, NULL AS anon__1
FROM allocations
WHERE allocations.consumer_id IN (__[POSTCOMPILE_consumers])

-- store.claim_reads._of_holders[0]
SELECT 3, convert(projects.external_id using utf8mb4) AS common_text_1, projects.id, NULL AS anon_1, NULL AS anon__1, NULL AS anon__2, NULL AS anon__3, NULL AS anon__4, NULL AS anon__5
FROM projects
WHERE projects.id IN (SELECT consumers.project_id
FROM consumers
WHERE consumers.uuid IN (__[POSTCOMPILE_consumers]))

-- store.claim_reads._of_holders[1]
SELECT 4, convert(users.external_id using utf8mb4) AS common_text_1, users.id, NULL AS anon_1, NULL AS anon__1, NULL AS anon__2, NULL AS anon__3, NULL AS anon__4, NULL AS anon__5
FROM users
WHERE users.id IN (SELECT consumers.user_id
FROM consumers
WHERE consumers.uuid IN (__[POSTCOMPILE_consumers]))

-- store.claim_reads._of_holders[2]
SELECT 7, convert(berth_consumer_names.name using utf8mb4) AS common_text_1, berth_consumer_names.id, NULL AS anon_1, NULL AS anon__1, NULL AS anon__2, NULL AS anon__3, NULL AS anon__4, NULL AS anon__5
FROM berth_consumer_names
WHERE berth_consumer_names.consumer_uuid IN (__[POSTCOMPILE_consumers])

-- store.claims._CHANGE_USAGE
UPDATE berth_usages SET used=(berth_usages.used + %s), generation=coalesce(%s, berth_usages.generation) WHERE berth_usages.resource_provider_id = %s AND berth_usages.resource_class_id = %s AND (%s IS NULL OR (SELECT resource_providers.generation
FROM resource_providers
WHERE resource_providers.id = berth_usages.resource_provider_id) = %s) AND (%s <= 0 OR (SELECT %s <= 0 OR berth_usages.used + %s <= (inventories.total - inventories.reserved) * (concat(inventories.allocation_ratio) + 0e0) AS anon_1
FROM inventories
WHERE inventories.resource_provider_id = berth_usages.resource_provider_id AND inventories.resource_class_id = berth_usages.resource_class_id))

-- store.claims._CLAIM_USAGE
UPDATE berth_usages SET used=(berth_usages.used + %s), generation=%s WHERE berth_usages.resource_provider_id = %s AND berth_usages.resource_class_id = %s AND (SELECT resource_providers.generation
FROM resource_providers
WHERE resource_providers.id = berth_usages.resource_provider_id) = %s AND (SELECT %s <= 0 OR berth_usages.used + %s <= (inventories.total - inventories.reserved) * (concat(inventories.allocation_ratio) + 0e0) AS anon_1
FROM inventories
WHERE inventories.resource_provider_id = berth_usages.resource_provider_id AND inventories.resource_class_id = berth_usages.resource_class_id AND %s >= inventories.min_unit AND %s <= inventories.max_unit AND %s %% nullif(inventories.step_size, 0) = 0)

-- store.claims._INSERT
INSERT INTO allocations (created_at, resource_provider_id, consumer_id, resource_class_id, used) VALUES (%s, %s, %s, %s, %s)

-- store.claims._RELEASE
DELETE FROM allocations WHERE allocations.consumer_id IN (__[POSTCOMPILE_consumers])

-- store.claims._RELEASE_USAGE
UPDATE berth_usages SET used=(berth_usages.used + %s) WHERE berth_usages.resource_provider_id = %s AND berth_usages.resource_class_id = %s

-- store.claims._has_room
SELECT %s <= 0 OR berth_usages.used + %s <= (inventories.total - inventories.reserved) * (concat(inventories.allocation_ratio) + 0e0) AS anon_1
FROM berth_usages, inventories
WHERE inventories.resource_provider_id = berth_usages.resource_provider_id AND inventories.resource_class_id = berth_usages.resource_class_id

-- store.confined._HOLDING
SELECT allocations.resource_provider_id
FROM allocations
WHERE allocations.consumer_id = %s

-- store.confined._HOST
SELECT resource_providers.id, resource_providers.uuid, resource_providers.name, resource_providers.root_provider_id
FROM resource_providers
WHERE resource_providers.uuid = %s OR resource_providers.name = %s

-- store.confined._MEMBERSHIPS
SELECT DISTINCT placement_aggregates.id, placement_aggregates.uuid
FROM placement_aggregates INNER JOIN resource_provider_aggregates ON resource_provider_aggregates.aggregate_id = placement_aggregates.id INNER JOIN resource_providers ON resource_providers.id = resource_provider_aggregates.resource_provider_id
WHERE resource_providers.root_provider_id = %s

-- store.confined._PLACES
SELECT resource_providers.id, resource_providers.name, root.name AS name_1
FROM resource_providers LEFT OUTER JOIN resource_providers AS root ON root.id = resource_providers.root_provider_id
WHERE resource_providers.id IN (__[POSTCOMPILE_providers]) ORDER BY resource_providers.id

-- store.confined._SHARING
SELECT resource_provider_aggregates.aggregate_id, resource_providers.id, resource_providers.name
FROM resource_provider_aggregates INNER JOIN resource_providers ON resource_providers.id = resource_provider_aggregates.resource_provider_id INNER JOIN resource_provider_traits ON resource_provider_traits.resource_provider_id = resource_providers.id INNER JOIN traits ON traits.id = resource_provider_traits.trait_id
WHERE traits.name = %s AND resource_provider_aggregates.aggregate_id IN (__[POSTCOMPILE_aggregates]) ORDER BY resource_providers.id

-- store.consumer_lists._ALLOCATIONS
SELECT allocations.consumer_id, resource_providers.uuid, resource_providers.name, resource_classes.name AS name_1, allocations.used
FROM allocations INNER JOIN resource_providers ON resource_providers.id = allocations.resource_provider_id INNER JOIN resource_classes ON resource_classes.id = allocations.resource_class_id
WHERE allocations.consumer_id IN (__[POSTCOMPILE_consumers]) ORDER BY allocations.id

-- store.consumer_lists._BY_UUID
SELECT consumers.uuid, berth_consumer_names.name, projects.external_id, users.external_id AS external_id_1, consumer_types.name AS name_1, consumers.generation, consumers.created_at, berth_leases.expires_at
FROM consumers INNER JOIN projects ON projects.id = consumers.project_id INNER JOIN users ON users.id = consumers.user_id LEFT OUTER JOIN consumer_types ON consumer_types.id = consumers.consumer_type_id LEFT OUTER JOIN berth_consumer_names ON berth_consumer_names.consumer_uuid = consumers.uuid LEFT OUTER JOIN berth_leases ON berth_leases.consumer_uuid = consumers.uuid AND berth_leases.consumer_id = consumers.id AND berth_leases.consumer_created_at <=> consumers.created_at AND berth_leases.consumer_generation = consumers.generation
WHERE consumers.uuid = %s

-- store.consumer_lists._NEXT
SELECT consumers.uuid, berth_consumer_names.name, projects.external_id, users.external_id AS external_id_1, consumer_types.name AS name_1, consumers.generation, consumers.created_at, berth_leases.expires_at
FROM consumers INNER JOIN projects ON projects.id = consumers.project_id INNER JOIN users ON users.id = consumers.user_id LEFT OUTER JOIN consumer_types ON consumer_types.id = consumers.consumer_type_id LEFT OUTER JOIN berth_consumer_names ON berth_consumer_names.consumer_uuid = consumers.uuid LEFT OUTER JOIN berth_leases ON berth_leases.consumer_uuid = consumers.uuid AND berth_leases.consumer_id = consumers.id AND berth_leases.consumer_created_at <=> consumers.created_at AND berth_leases.consumer_generation = consumers.generation
WHERE consumers.uuid > %s ORDER BY consumers.uuid
 LIMIT %s

-- store.consumer_lists._OF_NAME
SELECT consumers.uuid, berth_consumer_names.name, projects.external_id, users.external_id AS external_id_1, consumer_types.name AS name_1, consumers.generation, consumers.created_at, berth_leases.expires_at
FROM consumers INNER JOIN projects ON projects.id = consumers.project_id INNER JOIN users ON users.id = consumers.user_id LEFT OUTER JOIN consumer_types ON consumer_types.id = consumers.consumer_type_id LEFT OUTER JOIN berth_consumer_names ON berth_consumer_names.consumer_uuid = consumers.uuid LEFT OUTER JOIN berth_leases ON berth_leases.consumer_uuid = consumers.uuid AND berth_leases.consumer_id = consumers.id AND berth_leases.consumer_created_at <=> consumers.created_at AND berth_leases.consumer_generation = consumers.generation
WHERE consumers.uuid > %s AND berth_consumer_names.name = %s ORDER BY consumers.uuid
 LIMIT %s

-- store.consumer_lists._OF_PROJECT
SELECT consumers.uuid, berth_consumer_names.name, projects.external_id, users.external_id AS external_id_1, consumer_types.name AS name_1, consumers.generation, consumers.created_at, berth_leases.expires_at
FROM consumers INNER JOIN projects ON projects.id = consumers.project_id INNER JOIN users ON users.id = consumers.user_id LEFT OUTER JOIN consumer_types ON consumer_types.id = consumers.consumer_type_id LEFT OUTER JOIN berth_consumer_names ON berth_consumer_names.consumer_uuid = consumers.uuid LEFT OUTER JOIN berth_leases ON berth_leases.consumer_uuid = consumers.uuid AND berth_leases.consumer_id = consumers.id AND berth_leases.consumer_created_at <=> consumers.created_at AND berth_leases.consumer_generation = consumers.generation
WHERE consumers.uuid > %s AND projects.external_id = %s ORDER BY consumers.uuid
 LIMIT %s

-- store.consumer_lists._OF_PROVIDER
SELECT consumers.uuid, berth_consumer_names.name, projects.external_id, users.external_id AS external_id_1, consumer_types.name AS name_1, consumers.generation, consumers.created_at, berth_leases.expires_at
FROM consumers INNER JOIN projects ON projects.id = consumers.project_id INNER JOIN users ON users.id = consumers.user_id LEFT OUTER JOIN consumer_types ON consumer_types.id = consumers.consumer_type_id LEFT OUTER JOIN berth_consumer_names ON berth_consumer_names.consumer_uuid = consumers.uuid LEFT OUTER JOIN berth_leases ON berth_leases.consumer_uuid = consumers.uuid AND berth_leases.consumer_id = consumers.id AND berth_leases.consumer_created_at <=> consumers.created_at AND berth_leases.consumer_generation = consumers.generation
WHERE consumers.uuid > %s AND consumers.uuid IN (SELECT allocations.consumer_id
FROM allocations
WHERE allocations.resource_provider_id = %s) ORDER BY consumers.uuid
 LIMIT %s

-- store.consumer_lists._OF_PROVIDER_AND_TREE
SELECT consumers.uuid, berth_consumer_names.name, projects.external_id, users.external_id AS external_id_1, consumer_types.name AS name_1, consumers.generation, consumers.created_at, berth_leases.expires_at
FROM consumers INNER JOIN projects ON projects.id = consumers.project_id INNER JOIN users ON users.id = consumers.user_id LEFT OUTER JOIN consumer_types ON consumer_types.id = consumers.consumer_type_id LEFT OUTER JOIN berth_consumer_names ON berth_consumer_names.consumer_uuid = consumers.uuid LEFT OUTER JOIN berth_leases ON berth_leases.consumer_uuid = consumers.uuid AND berth_leases.consumer_id = consumers.id AND berth_leases.consumer_created_at <=> consumers.created_at AND berth_leases.consumer_generation = consumers.generation
WHERE consumers.uuid > %s AND consumers.uuid IN (SELECT allocations.consumer_id
FROM allocations
WHERE allocations.resource_provider_id = %s) AND consumers.uuid IN (SELECT allocations.consumer_id
FROM allocations INNER JOIN resource_providers ON resource_providers.id = allocations.resource_provider_id
WHERE resource_providers.root_provider_id = %s) ORDER BY consumers.uuid
 LIMIT %s

-- store.consumer_lists._OF_TREE
SELECT consumers.uuid, berth_consumer_names.name, projects.external_id, users.external_id AS external_id_1, consumer_types.name AS name_1, consumers.generation, consumers.created_at, berth_leases.expires_at
FROM consumers INNER JOIN projects ON projects.id = consumers.project_id INNER JOIN users ON users.id = consumers.user_id LEFT OUTER JOIN consumer_types ON consumer_types.id = consumers.consumer_type_id LEFT OUTER JOIN berth_consumer_names ON berth_consumer_names.consumer_uuid = consumers.uuid LEFT OUTER JOIN berth_leases ON berth_leases.consumer_uuid = consumers.uuid AND berth_leases.consumer_id = consumers.id AND berth_leases.consumer_created_at <=> consumers.created_at AND berth_leases.consumer_generation = consumers.generation
WHERE consumers.uuid > %s AND consumers.uuid IN (SELECT allocations.consumer_id
FROM allocations INNER JOIN resource_providers ON resource_providers.id = allocations.resource_provider_id
WHERE resource_providers.root_provider_id = %s) ORDER BY consumers.uuid
 LIMIT %s

-- store.consumer_lists._RECORDS
SELECT consumers.uuid, berth_consumer_names.name, projects.external_id, users.external_id AS external_id_1, consumer_types.name AS name_1, consumers.generation, consumers.created_at, berth_leases.expires_at
FROM consumers INNER JOIN projects ON projects.id = consumers.project_id INNER JOIN users ON users.id = consumers.user_id LEFT OUTER JOIN consumer_types ON consumer_types.id = consumers.consumer_type_id LEFT OUTER JOIN berth_consumer_names ON berth_consumer_names.consumer_uuid = consumers.uuid LEFT OUTER JOIN berth_leases ON berth_leases.consumer_uuid = consumers.uuid AND berth_leases.consumer_id = consumers.id AND berth_leases.consumer_created_at <=> consumers.created_at AND berth_leases.consumer_generation = consumers.generation

-- store.consumer_lists._SEARCHED
SELECT consumers.uuid, berth_consumer_names.name, projects.external_id, users.external_id AS external_id_1, consumer_types.name AS name_1, consumers.generation, consumers.created_at, berth_leases.expires_at
FROM consumers INNER JOIN projects ON projects.id = consumers.project_id INNER JOIN users ON users.id = consumers.user_id LEFT OUTER JOIN consumer_types ON consumer_types.id = consumers.consumer_type_id LEFT OUTER JOIN berth_consumer_names ON berth_consumer_names.consumer_uuid = consumers.uuid LEFT OUTER JOIN berth_leases ON berth_leases.consumer_uuid = consumers.uuid AND berth_leases.consumer_id = consumers.id AND berth_leases.consumer_created_at <=> consumers.created_at AND berth_leases.consumer_generation = consumers.generation INNER JOIN (SELECT consumers_1.uuid AS uuid
FROM consumers AS consumers_1 INNER JOIN (SELECT consumers_1.uuid AS uuid
FROM consumers AS consumers_1
WHERE consumers_1.uuid BETWEEN %s AND %s UNION SELECT berth_consumer_names.consumer_uuid AS consumer_uuid
FROM berth_consumer_names
WHERE lower(berth_consumer_names.name) LIKE lower(%s) ESCAPE '/') AS anon_2 ON anon_2.uuid = consumers_1.uuid
WHERE consumers_1.uuid > %s ORDER BY consumers_1.uuid
 LIMIT %s) AS anon_1 ON anon_1.uuid = consumers.uuid
WHERE consumers.uuid > %s ORDER BY consumers.uuid
 LIMIT %s

-- store.consumer_lists._SEARCHED_OF_PROJECT
SELECT consumers.uuid, berth_consumer_names.name, projects.external_id, users.external_id AS external_id_1, consumer_types.name AS name_1, consumers.generation, consumers.created_at, berth_leases.expires_at
FROM consumers INNER JOIN projects ON projects.id = consumers.project_id INNER JOIN users ON users.id = consumers.user_id LEFT OUTER JOIN consumer_types ON consumer_types.id = consumers.consumer_type_id LEFT OUTER JOIN berth_consumer_names ON berth_consumer_names.consumer_uuid = consumers.uuid LEFT OUTER JOIN berth_leases ON berth_leases.consumer_uuid = consumers.uuid AND berth_leases.consumer_id = consumers.id AND berth_leases.consumer_created_at <=> consumers.created_at AND berth_leases.consumer_generation = consumers.generation INNER JOIN (SELECT consumers_1.uuid AS uuid
FROM consumers AS consumers_1 INNER JOIN (SELECT consumers_1.uuid AS uuid
FROM consumers AS consumers_1
WHERE consumers_1.uuid BETWEEN %s AND %s AND consumers_1.project_id IN (SELECT projects.id
FROM projects
WHERE projects.external_id = %s) UNION SELECT berth_consumer_names.consumer_uuid AS consumer_uuid
FROM berth_consumer_names
WHERE lower(berth_consumer_names.name) LIKE lower(%s) ESCAPE '/' AND berth_consumer_names.project_id IN (SELECT projects.id
FROM projects
WHERE projects.external_id = %s)) AS anon_2 ON anon_2.uuid = consumers_1.uuid
WHERE consumers_1.uuid > %s ORDER BY consumers_1.uuid
 LIMIT %s) AS anon_1 ON anon_1.uuid = consumers.uuid
WHERE consumers.uuid > %s ORDER BY consumers.uuid
 LIMIT %s

-- store.consumers._BY_NAME
SELECT berth_consumer_names.consumer_uuid, berth_consumer_names.name, projects.external_id
FROM berth_consumer_names INNER JOIN projects ON projects.id = berth_consumer_names.project_id INNER JOIN consumers ON consumers.uuid = berth_consumer_names.consumer_uuid
WHERE projects.external_id = %s AND berth_consumer_names.name = %s

-- store.consumers._BY_UUID
SELECT consumers.id, consumers.uuid, consumers.generation, consumers.consumer_type_id, consumers.project_id, consumers.user_id, (SELECT berth_consumer_names.id
FROM berth_consumer_names
WHERE berth_consumer_names.consumer_uuid = consumers.uuid) AS anon_1, (SELECT CASE WHEN (berth_leases.consumer_uuid = consumers.uuid AND berth_leases.consumer_id = consumers.id AND berth_leases.consumer_created_at <=> consumers.created_at AND berth_leases.consumer_generation = consumers.generation) THEN 1 ELSE 0 END AS anon_3
FROM berth_leases
WHERE berth_leases.consumer_uuid = consumers.uuid) AS anon_2
FROM consumers
WHERE consumers.uuid IN (__[POSTCOMPILE_uuids])

-- store.consumers._DELETE
DELETE FROM consumers WHERE consumers.id = %s AND consumers.generation = %s

-- store.consumers._DELETE_NAMES
DELETE FROM berth_consumer_names WHERE berth_consumer_names.consumer_uuid IN (__[POSTCOMPILE_consumers])

-- store.consumers._IDS
SELECT 0, convert(projects.external_id using utf8mb4) AS common_text_1, projects.id
FROM projects
WHERE projects.external_id IN (__[POSTCOMPILE_names_0]) UNION ALL SELECT 1, convert(users.external_id using utf8mb4) AS common_text_2, users.id
FROM users
WHERE users.external_id IN (__[POSTCOMPILE_names_1]) UNION ALL SELECT 2, convert(consumer_types.name using utf8mb4) AS common_text_3, consumer_types.id
FROM consumer_types
WHERE consumer_types.name IN (__[POSTCOMPILE_names_2])

-- store.consumers._INSERT
INSERT INTO consumers (created_at, uuid, project_id, user_id, generation, consumer_type_id) VALUES (%s, %s, %s, %s, %s, %s)

-- store.consumers._INSERT_NAMES
INSERT INTO berth_consumer_names (project_id, name, consumer_uuid) VALUES (%s, %s, %s)

-- store.consumers._TAKEN
SELECT berth_consumer_names.project_id, berth_consumer_names.name, berth_consumer_names.consumer_uuid, consumers.id
FROM berth_consumer_names LEFT OUTER JOIN consumers ON consumers.uuid = berth_consumer_names.consumer_uuid
WHERE berth_consumer_names.project_id IN (__[POSTCOMPILE_projects]) AND berth_consumer_names.name IN (__[POSTCOMPILE_names])

-- store.consumers._UPDATE
UPDATE consumers SET updated_at=%s, project_id=%s, user_id=%s, generation=(consumers.generation + %s), consumer_type_id=%s WHERE consumers.id = %s AND consumers.generation = %s

-- store.engine.database._CLOCK
SELECT utc_timestamp(6) AS server_time_1

-- store.engine.journal._FENCE
UPDATE berth_writer SET seq=(berth_writer.seq + %s), updated_at=%s WHERE berth_writer.id = %s AND berth_writer.seq = %s

-- store.engine.journal._FORGET
DELETE FROM berth_journal WHERE berth_journal.writer_id = %s AND berth_journal.seq <= %s

-- store.engine.journal._HAS_NOTED
SELECT berth_journal.seq
FROM berth_journal
WHERE berth_journal.writer_id = %s AND berth_journal.seq = %s
 LIMIT %s

-- store.engine.journal._HORIZONS
SELECT berth_writer.id, coalesce((SELECT berth_journal.seq - %s AS anon_1
FROM berth_journal
WHERE berth_journal.writer_id = berth_writer.id AND berth_journal.created_at >= %s ORDER BY berth_journal.seq
 LIMIT %s), (SELECT max(berth_journal.seq) AS max_1
FROM berth_journal
WHERE berth_journal.writer_id = berth_writer.id)) AS coalesce_1
FROM berth_writer

-- store.engine.journal._IDLE_WRITER
SELECT berth_writer.id, berth_writer.seq
FROM berth_writer
WHERE berth_writer.updated_at < %s ORDER BY berth_writer.id
 LIMIT %s

-- store.engine.journal._MARK
UPDATE berth_writer SET trimmed_seq=%s WHERE berth_writer.id = %s AND berth_writer.trimmed_seq < %s

-- store.engine.journal._MOVE
UPDATE berth_writer SET seq=(berth_writer.seq + %s), updated_at=%s WHERE berth_writer.id = %s AND berth_writer.seq = %s

-- store.engine.journal._NEW_WRITER
INSERT INTO berth_writer (seq, trimmed_seq, updated_at) VALUES (%s, %s, %s)

-- store.engine.journal._NOTE
INSERT INTO berth_journal (writer_id, seq, provider_id, usage_only, created_at, gone_uuid) VALUES (%s, %s, %s, %s, %s, %s)

-- store.engine.placement_sweep._DELETE
DELETE FROM berth_placements WHERE berth_placements.id > %s AND berth_placements.id <= %s AND berth_placements.created_at < %s AND NOT (EXISTS (SELECT allocations.id
FROM allocations
WHERE allocations.consumer_id = berth_placements.consumer_uuid))

-- store.engine.placement_sweep._LAST_OF_PART
SELECT max(anon_1.id) AS max_1
FROM (SELECT berth_placements.id AS id
FROM berth_placements
WHERE berth_placements.id > %s ORDER BY berth_placements.id
 LIMIT %s) AS anon_1

-- store.engine.placement_sweep._NEWEST
SELECT coalesce(max(berth_placements.id), %s) AS coalesce_1
FROM berth_placements

-- store.engine.project_usages._ADD
UPDATE berth_project_usages SET used_0=(berth_project_usages.used_0 + %s), used_1=(berth_project_usages.used_1 + %s), used_2=(berth_project_usages.used_2 + %s), used_3=(berth_project_usages.used_3 + %s) WHERE berth_project_usages.project_id = %s AND berth_project_usages.user_id = %s AND berth_project_usages.consumer_type_id = %s AND berth_project_usages.first_class = %s AND berth_project_usages.writer_id = %s

-- store.engine.project_usages._BEGIN
INSERT INTO berth_project_usages (project_id, user_id, consumer_type_id, first_class, writer_id, used_0, used_1, used_2, used_3) VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s)

-- store.engine.project_usages._OF_ENDED_WRITERS
SELECT berth_project_usages.project_id, berth_project_usages.user_id, berth_project_usages.consumer_type_id, berth_project_usages.first_class, berth_project_usages.writer_id, berth_project_usages.used_0, berth_project_usages.used_1, berth_project_usages.used_2, berth_project_usages.used_3
FROM berth_project_usages INNER JOIN berth_writer ON berth_writer.id = berth_project_usages.writer_id
WHERE berth_writer.updated_at < %s
 LIMIT %s

-- store.engine.project_usages._TAKE
DELETE FROM berth_project_usages WHERE berth_project_usages.project_id = %s AND berth_project_usages.user_id = %s AND berth_project_usages.consumer_type_id = %s AND berth_project_usages.first_class = %s AND berth_project_usages.writer_id = %s AND berth_project_usages.used_0 = %s AND berth_project_usages.used_1 = %s AND berth_project_usages.used_2 = %s AND berth_project_usages.used_3 = %s

-- store.foreign_writes._CLASS_NAMES
SELECT resource_classes.id, resource_classes.name
FROM resource_classes

-- store.foreign_writes._MOVED
SELECT resource_providers.id, resource_providers.uuid, resource_providers.name, resource_providers.generation, max(berth_usages.generation) AS known
FROM resource_providers LEFT OUTER JOIN inventories ON inventories.resource_provider_id = resource_providers.id LEFT OUTER JOIN berth_usages ON berth_usages.resource_provider_id = resource_providers.id
WHERE resource_providers.id IN (__[POSTCOMPILE_providers]) AND (inventories.id IS NOT NULL OR berth_usages.resource_provider_id IS NOT NULL) GROUP BY resource_providers.id, resource_providers.uuid, resource_providers.name, resource_providers.generation
HAVING coalesce(max(berth_usages.generation), %s) != coalesce(resource_providers.generation, %s)

-- store.generations._BUMP
UPDATE resource_providers SET updated_at=%s, generation=(resource_providers.generation + %s) WHERE resource_providers.id = %s AND resource_providers.generation = coalesce(%s, resource_providers.generation)

-- store.generations._HAS_STOCK
SELECT (EXISTS (SELECT *
FROM inventories
WHERE inventories.resource_provider_id = %s)) OR (EXISTS (SELECT *
FROM berth_usages
WHERE berth_usages.resource_provider_id = %s)) AS anon_1

-- store.generations._KEEP
UPDATE berth_usages SET generation=%s WHERE berth_usages.resource_provider_id = %s AND (EXISTS (SELECT one.anon_1
FROM (SELECT %s AS anon_1
FROM berth_usages AS known
WHERE known.resource_provider_id = %s AND known.generation = %s
 LIMIT %s) AS one))

-- store.generations._PIN
UPDATE resource_providers SET updated_at=utc_timestamp() - INTERVAL (resource_providers.updated_at <=> utc_timestamp()) SECOND, generation=resource_providers.generation WHERE resource_providers.id = %s AND resource_providers.generation = %s

-- store.identity._INSERT
INSERT INTO berth_meta (`key`, value) VALUES (%s, %s)

-- store.identity._READ
SELECT berth_meta.value
FROM berth_meta
WHERE berth_meta.`key` = %s

-- store.identity._REMOVE
DELETE FROM berth_meta WHERE berth_meta.`key` = %s

-- store.identity._REWRITE
UPDATE berth_meta SET value=berth_meta.value WHERE berth_meta.`key` = %s

-- store.index_feed._CLASSES
SELECT resource_classes.name, resource_classes.id
FROM resource_classes

-- store.index_feed._HEADS
SELECT berth_writer.id, berth_writer.seq, berth_writer.trimmed_seq
FROM berth_writer

-- store.index_feed._LAST_ROOT_OF_PART
SELECT resource_providers.root_provider_id
FROM resource_providers
WHERE resource_providers.root_provider_id > %s ORDER BY resource_providers.root_provider_id
 LIMIT %s, %s

-- store.index_feed._NOTED
SELECT berth_journal.provider_id, min(CAST(berth_journal.usage_only AS SIGNED INTEGER)) AS min_1
FROM berth_journal
WHERE berth_journal.writer_id = %s AND berth_journal.seq > %s GROUP BY berth_journal.provider_id

-- store.index_feed._OF_NO_ROOT
SELECT resource_providers.id, resource_providers.uuid, resource_providers.parent_provider_id, resource_providers.root_provider_id, resource_providers.name, coalesce(resource_providers.generation, %s) AS coalesce_1, coalesce(timestampdiff(SECOND, '1970-01-01', coalesce(resource_providers.updated_at, resource_providers.created_at)), %s) AS coalesce_3
FROM resource_providers
WHERE resource_providers.root_provider_id IS NULL OR resource_providers.root_provider_id < %s

-- store.index_feed._OF_ROOTS[0]
SELECT resource_providers.id, resource_providers.uuid, resource_providers.parent_provider_id, resource_providers.root_provider_id, resource_providers.name, coalesce(resource_providers.generation, %s) AS coalesce_1, coalesce(timestampdiff(SECOND, '1970-01-01', coalesce(resource_providers.updated_at, resource_providers.created_at)), %s) AS coalesce_3
FROM resource_providers
WHERE resource_providers.root_provider_id IN (__[POSTCOMPILE_roots])

-- store.index_feed._OF_ROOTS[1]
SELECT inventories.resource_provider_id, inventories.resource_class_id, inventories.total, inventories.reserved, inventories.allocation_ratio, coalesce(berth_usages.used, %s) AS coalesce_1, inventories.min_unit, inventories.max_unit, inventories.step_size, coalesce(timestampdiff(SECOND, '1970-01-01', coalesce(inventories.updated_at, inventories.created_at)), %s) AS coalesce_3
FROM resource_providers INNER JOIN inventories ON inventories.resource_provider_id = resource_providers.id LEFT OUTER JOIN berth_usages ON berth_usages.resource_provider_id = inventories.resource_provider_id AND berth_usages.resource_class_id = inventories.resource_class_id
WHERE resource_providers.root_provider_id IN (__[POSTCOMPILE_roots])

-- store.index_feed._OF_ROOTS[2]
SELECT resource_provider_traits.resource_provider_id, resource_provider_traits.trait_id
FROM resource_providers INNER JOIN resource_provider_traits ON resource_provider_traits.resource_provider_id = resource_providers.id
WHERE resource_providers.root_provider_id IN (__[POSTCOMPILE_roots])

-- store.index_feed._OF_ROOTS[3]
SELECT resource_provider_aggregates.resource_provider_id, resource_provider_aggregates.aggregate_id
FROM resource_providers INNER JOIN resource_provider_aggregates ON resource_provider_aggregates.resource_provider_id = resource_providers.id
WHERE resource_providers.root_provider_id IN (__[POSTCOMPILE_roots])

-- store.index_feed._OF_ROOTS[4]
SELECT berth_drained.provider_id, berth_drained.drain_id
FROM resource_providers INNER JOIN berth_drained ON berth_drained.provider_id = resource_providers.id AND berth_drained.provider_uuid = resource_providers.uuid
WHERE resource_providers.root_provider_id IN (__[POSTCOMPILE_roots])

-- store.index_feed._OF_ROOT_RANGE[0]
SELECT resource_providers.id, resource_providers.uuid, resource_providers.parent_provider_id, resource_providers.root_provider_id, resource_providers.name, coalesce(resource_providers.generation, %s) AS coalesce_1, coalesce(timestampdiff(SECOND, '1970-01-01', coalesce(resource_providers.updated_at, resource_providers.created_at)), %s) AS coalesce_3
FROM resource_providers
WHERE resource_providers.root_provider_id > %s AND resource_providers.root_provider_id <= %s

-- store.index_feed._OF_ROOT_RANGE[1]
SELECT inventories.resource_provider_id, inventories.resource_class_id, inventories.total, inventories.reserved, inventories.allocation_ratio, coalesce(berth_usages.used, %s) AS coalesce_1, inventories.min_unit, inventories.max_unit, inventories.step_size, coalesce(timestampdiff(SECOND, '1970-01-01', coalesce(inventories.updated_at, inventories.created_at)), %s) AS coalesce_3
FROM resource_providers INNER JOIN inventories ON inventories.resource_provider_id = resource_providers.id LEFT OUTER JOIN berth_usages ON berth_usages.resource_provider_id = inventories.resource_provider_id AND berth_usages.resource_class_id = inventories.resource_class_id
WHERE resource_providers.root_provider_id > %s AND resource_providers.root_provider_id <= %s

-- store.index_feed._OF_ROOT_RANGE[2]
SELECT resource_provider_traits.resource_provider_id, resource_provider_traits.trait_id
FROM resource_providers INNER JOIN resource_provider_traits ON resource_provider_traits.resource_provider_id = resource_providers.id
WHERE resource_providers.root_provider_id > %s AND resource_providers.root_provider_id <= %s

-- store.index_feed._OF_ROOT_RANGE[3]
SELECT resource_provider_aggregates.resource_provider_id, resource_provider_aggregates.aggregate_id
FROM resource_providers INNER JOIN resource_provider_aggregates ON resource_provider_aggregates.resource_provider_id = resource_providers.id
WHERE resource_providers.root_provider_id > %s AND resource_providers.root_provider_id <= %s

-- store.index_feed._OF_ROOT_RANGE[4]
SELECT berth_drained.provider_id, berth_drained.drain_id
FROM resource_providers INNER JOIN berth_drained ON berth_drained.provider_id = resource_providers.id AND berth_drained.provider_uuid = resource_providers.uuid
WHERE resource_providers.root_provider_id > %s AND resource_providers.root_provider_id <= %s

-- store.index_feed._ROOTS_OF
SELECT resource_providers.root_provider_id
FROM resource_providers
WHERE resource_providers.id IN (__[POSTCOMPILE_providers])

-- store.index_feed._STATES
SELECT resource_providers.id, coalesce(resource_providers.generation, %s) AS coalesce_1, coalesce(timestampdiff(SECOND, '1970-01-01', coalesce(resource_providers.updated_at, resource_providers.created_at)), %s) AS coalesce_3, berth_usages.resource_class_id, berth_usages.used
FROM resource_providers LEFT OUTER JOIN berth_usages ON berth_usages.resource_provider_id = resource_providers.id
WHERE resource_providers.id IN (__[POSTCOMPILE_providers])

-- store.index_feed._TEXTS_OF_ROOT_RANGE[0]
SELECT count(*) AS count_1, group_concat(resource_providers.id, ',' SEPARATOR '') AS joined_1, group_concat(coalesce(resource_providers.uuid, %s), '
' SEPARATOR '') AS lines_1, group_concat(coalesce(resource_providers.parent_provider_id, %s), ',' SEPARATOR '') AS joined_2, group_concat(resource_providers.root_provider_id, ',' SEPARATOR '') AS joined_3, group_concat(coalesce(resource_providers.name, %s), '
' SEPARATOR '') AS lines_2, group_concat(coalesce(resource_providers.generation, %s), ',' SEPARATOR '') AS joined_4, group_concat(coalesce(timestampdiff(SECOND, '1970-01-01', coalesce(resource_providers.updated_at, resource_providers.created_at)), %s), ',' SEPARATOR '') AS joined_5
FROM resource_providers
WHERE resource_providers.root_provider_id > %s AND resource_providers.root_provider_id <= %s

-- store.index_feed._TEXTS_OF_ROOT_RANGE[1]
SELECT count(*) AS count_1, group_concat(inventories.resource_provider_id, ',' SEPARATOR '') AS joined_1, group_concat(inventories.resource_class_id, ',' SEPARATOR '') AS joined_2, group_concat(inventories.total, ',' SEPARATOR '') AS joined_3, group_concat(inventories.reserved, ',' SEPARATOR '') AS joined_4, group_concat(CASE WHEN ((concat(inventories.allocation_ratio) + 0e0) BETWEEN %s AND %s AND round((concat(inventories.allocation_ratio) + 0e0) * %s) / %s = (concat(inventories.allocation_ratio) + 0e0)) THEN CAST(round((concat(inventories.allocation_ratio) + 0e0) * %s) AS SIGNED INTEGER) END, ',' SEPARATOR '') AS joined_5, group_concat(coalesce(berth_usages.used, %s), ',' SEPARATOR '') AS joined_6, group_concat(inventories.min_unit, ',' SEPARATOR '') AS joined_7, group_concat(inventories.max_unit, ',' SEPARATOR '') AS joined_8, group_concat(inventories.step_size, ',' SEPARATOR '') AS joined_9, group_concat(coalesce(timestampdiff(SECOND, '1970-01-01', coalesce(inventories.updated_at, inventories.created_at)), %s), ',' SEPARATOR '') AS joined_10
FROM resource_providers INNER JOIN inventories ON inventories.resource_provider_id = resource_providers.id LEFT OUTER JOIN berth_usages ON berth_usages.resource_provider_id = inventories.resource_provider_id AND berth_usages.resource_class_id = inventories.resource_class_id
WHERE resource_providers.root_provider_id > %s AND resource_providers.root_provider_id <= %s

-- store.index_feed._TEXTS_OF_ROOT_RANGE[2]
SELECT count(*) AS count_1, group_concat(resource_provider_traits.resource_provider_id, ',' SEPARATOR '') AS joined_1, group_concat(resource_provider_traits.trait_id, ',' SEPARATOR '') AS joined_2
FROM resource_providers INNER JOIN resource_provider_traits ON resource_provider_traits.resource_provider_id = resource_providers.id
WHERE resource_providers.root_provider_id > %s AND resource_providers.root_provider_id <= %s

-- store.index_feed._TEXTS_OF_ROOT_RANGE[3]
SELECT count(*) AS count_1, group_concat(resource_provider_aggregates.resource_provider_id, ',' SEPARATOR '') AS joined_1, group_concat(resource_provider_aggregates.aggregate_id, ',' SEPARATOR '') AS joined_2
FROM resource_providers INNER JOIN resource_provider_aggregates ON resource_provider_aggregates.resource_provider_id = resource_providers.id
WHERE resource_providers.root_provider_id > %s AND resource_providers.root_provider_id <= %s

-- store.index_feed._TEXTS_OF_ROOT_RANGE[4]
SELECT berth_drained.provider_id, berth_drained.drain_id
FROM resource_providers INNER JOIN berth_drained ON berth_drained.provider_id = resource_providers.id AND berth_drained.provider_uuid = resource_providers.uuid
WHERE resource_providers.root_provider_id > %s AND resource_providers.root_provider_id <= %s

-- store.index_feed._TRAITS
SELECT traits.name, traits.id, coalesce(timestampdiff(SECOND, '1970-01-01', coalesce(traits.updated_at, traits.created_at)), %s) AS coalesce_1
FROM traits

-- store.inventories._CLASS_NAMES
SELECT resource_classes.name
FROM resource_classes
WHERE resource_classes.id IN (__[POSTCOMPILE_classes]) ORDER BY resource_classes.id

-- store.inventories._DELETE
DELETE FROM inventories WHERE inventories.resource_provider_id = %s AND inventories.resource_class_id = %s

-- store.inventories._DELETE_UNUSED
DELETE FROM berth_usages WHERE berth_usages.resource_provider_id = %s AND berth_usages.resource_class_id = %s AND berth_usages.used = %s

-- store.inventories._INSERT
INSERT INTO inventories (created_at, resource_provider_id, resource_class_id, total, reserved, min_unit, max_unit, step_size, allocation_ratio) VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s)

-- store.inventories._INSERT_USAGE
INSERT INTO berth_usages (resource_provider_id, resource_class_id, used, generation) SELECT %s AS anon_1, %s AS anon_2, coalesce(sum(allocations.used), %s) AS coalesce_1, %s AS anon_3
FROM allocations
WHERE allocations.resource_provider_id = %s AND allocations.resource_class_id = %s

-- store.inventories._KEYS
SELECT inventories.resource_provider_id, inventories.resource_class_id
FROM inventories
WHERE inventories.resource_provider_id IN (__[POSTCOMPILE_providers])

-- store.inventories._KEYS_IN_USE
SELECT berth_usages.resource_provider_id, berth_usages.resource_class_id
FROM berth_usages
WHERE berth_usages.resource_provider_id IN (__[POSTCOMPILE_providers]) AND berth_usages.used > %s

-- store.inventories._PIN_CLASSES
UPDATE resource_classes SET updated_at=utc_timestamp() - INTERVAL (resource_classes.updated_at <=> utc_timestamp()) SECOND, name=resource_classes.name WHERE resource_classes.id IN (__[POSTCOMPILE_classes])

-- store.inventories._STORED
SELECT inventories.resource_provider_id, inventories.resource_class_id, inventories.total, inventories.reserved, inventories.min_unit, inventories.max_unit, inventories.step_size, inventories.allocation_ratio
FROM inventories
WHERE inventories.resource_provider_id IN (__[POSTCOMPILE_providers])

-- store.inventories._UPDATE
UPDATE inventories SET updated_at=%s, total=%s, reserved=%s, min_unit=%s, max_unit=%s, step_size=%s, allocation_ratio=%s WHERE inventories.resource_provider_id = %s AND inventories.resource_class_id = %s

-- store.lease_sweep._DUE
SELECT berth_leases.consumer_uuid, berth_leases.expires_at, berth_leases.renewals, berth_leases.id
FROM berth_leases
WHERE berth_leases.expires_at <= %s AND berth_leases.expires_at >= %s AND (berth_leases.expires_at > %s OR berth_leases.id > %s) ORDER BY berth_leases.expires_at, berth_leases.id
 LIMIT %s

-- store.lease_sweep._PLACES
SELECT DISTINCT consumers.uuid, projects.external_id, root.name
FROM consumers INNER JOIN projects ON projects.id = consumers.project_id INNER JOIN allocations ON allocations.consumer_id = consumers.uuid INNER JOIN resource_providers ON resource_providers.id = allocations.resource_provider_id INNER JOIN resource_providers AS root ON root.id = resource_providers.root_provider_id
WHERE consumers.uuid IN (__[POSTCOMPILE_consumers]) ORDER BY consumers.uuid, root.name

-- store.lease_sweep._PRESENT
SELECT berth_leases.consumer_uuid, berth_leases.expires_at, berth_leases.renewals
FROM berth_leases
WHERE berth_leases.consumer_uuid IN (__[POSTCOMPILE_consumers])

-- store.leases._COUNT
SELECT count(*) AS count_1
FROM berth_leases INNER JOIN consumers ON berth_leases.consumer_uuid = consumers.uuid AND berth_leases.consumer_id = consumers.id AND berth_leases.consumer_created_at <=> consumers.created_at AND berth_leases.consumer_generation = consumers.generation

-- store.leases._DELETE
DELETE FROM berth_leases WHERE berth_leases.consumer_uuid IN (__[POSTCOMPILE_consumers])

-- store.leases._DELETE_AS_SEEN
DELETE FROM berth_leases WHERE berth_leases.consumer_uuid = %s AND berth_leases.expires_at = %s AND berth_leases.renewals = %s

-- store.leases._HOLDER
SELECT consumers.id, consumers.generation, CASE WHEN (berth_leases.consumer_uuid = consumers.uuid AND berth_leases.consumer_id = consumers.id AND berth_leases.consumer_created_at <=> consumers.created_at AND berth_leases.consumer_generation = consumers.generation) THEN 1 ELSE 0 END AS anon_1, berth_leases.consumer_uuid, berth_leases.expires_at, berth_leases.renewals
FROM consumers LEFT OUTER JOIN berth_leases ON berth_leases.consumer_uuid = consumers.uuid
WHERE consumers.uuid = %s AND (EXISTS (SELECT allocations.id
FROM allocations
WHERE allocations.consumer_id = consumers.uuid))

-- store.leases._INSERT
INSERT INTO berth_leases (consumer_uuid, consumer_id, consumer_created_at, consumer_generation, expires_at, renewals) SELECT consumers.uuid, consumers.id, consumers.created_at, consumers.generation, %s AS anon_1, 0
FROM consumers
WHERE consumers.uuid = %s

-- store.leases._INSERT_AS_SEEN
INSERT INTO berth_leases (consumer_uuid, consumer_id, consumer_created_at, consumer_generation, expires_at, renewals) SELECT consumers.uuid, consumers.id, consumers.created_at, consumers.generation, %s AS anon_1, 0
FROM consumers
WHERE consumers.id = %s AND consumers.generation = %s

-- store.leases._LISTED
SELECT berth_leases.consumer_uuid, berth_consumer_names.name, projects.external_id, users.external_id AS external_id_1, berth_leases.expires_at
FROM berth_leases INNER JOIN consumers ON berth_leases.consumer_uuid = consumers.uuid AND berth_leases.consumer_id = consumers.id AND berth_leases.consumer_created_at <=> consumers.created_at AND berth_leases.consumer_generation = consumers.generation INNER JOIN projects ON projects.id = consumers.project_id INNER JOIN users ON users.id = consumers.user_id LEFT OUTER JOIN berth_consumer_names ON berth_consumer_names.consumer_uuid = consumers.uuid

-- store.leases._NEW
SELECT consumers.uuid, consumers.id, consumers.created_at, consumers.generation, %s AS anon_1, 0
FROM consumers

-- store.leases._NEXT
SELECT berth_leases.consumer_uuid, berth_consumer_names.name, projects.external_id, users.external_id AS external_id_1, berth_leases.expires_at
FROM berth_leases INNER JOIN consumers ON berth_leases.consumer_uuid = consumers.uuid AND berth_leases.consumer_id = consumers.id AND berth_leases.consumer_created_at <=> consumers.created_at AND berth_leases.consumer_generation = consumers.generation INNER JOIN projects ON projects.id = consumers.project_id INNER JOIN users ON users.id = consumers.user_id LEFT OUTER JOIN berth_consumer_names ON berth_consumer_names.consumer_uuid = consumers.uuid
WHERE berth_leases.consumer_uuid > %s ORDER BY berth_leases.consumer_uuid
 LIMIT %s

-- store.leases._NEXT_OF_PROJECT
SELECT berth_leases.consumer_uuid, berth_consumer_names.name, projects.external_id, users.external_id AS external_id_1, berth_leases.expires_at
FROM berth_leases INNER JOIN consumers ON berth_leases.consumer_uuid = consumers.uuid AND berth_leases.consumer_id = consumers.id AND berth_leases.consumer_created_at <=> consumers.created_at AND berth_leases.consumer_generation = consumers.generation INNER JOIN projects ON projects.id = consumers.project_id INNER JOIN users ON users.id = consumers.user_id LEFT OUTER JOIN berth_consumer_names ON berth_consumer_names.consumer_uuid = consumers.uuid
WHERE berth_leases.consumer_uuid > %s AND projects.external_id = %s ORDER BY berth_leases.consumer_uuid
 LIMIT %s

-- store.leases._ONE
SELECT berth_leases.consumer_uuid, berth_consumer_names.name, projects.external_id, users.external_id AS external_id_1, berth_leases.expires_at
FROM berth_leases INNER JOIN consumers ON berth_leases.consumer_uuid = consumers.uuid AND berth_leases.consumer_id = consumers.id AND berth_leases.consumer_created_at <=> consumers.created_at AND berth_leases.consumer_generation = consumers.generation INNER JOIN projects ON projects.id = consumers.project_id INNER JOIN users ON users.id = consumers.user_id LEFT OUTER JOIN berth_consumer_names ON berth_consumer_names.consumer_uuid = consumers.uuid
WHERE berth_leases.consumer_uuid = %s

-- store.leases._RENEW
UPDATE berth_leases SET consumer_id=%s, consumer_created_at=(SELECT consumers.created_at
FROM consumers
WHERE consumers.uuid = berth_leases.consumer_uuid), consumer_generation=%s, expires_at=%s, renewals=(berth_leases.renewals + %s) WHERE berth_leases.consumer_uuid = %s AND berth_leases.expires_at = %s AND berth_leases.renewals = %s

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
WHERE resource_providers.uuid = %s

-- store.lookups._TRAITS_BY_NAME
SELECT traits.name, traits.id
FROM traits
WHERE traits.name IN (__[POSTCOMPILE_names])

-- store.named._ADD
INSERT INTO berth_drained (drain_id, provider_id, provider_uuid) VALUES (%s, %s, %s)

-- store.named._DRAINS[0]
SELECT berth_drains.name, berth_drains.id, berth_drains.generation, berth_drains.effect, berth_drains.reason, berth_drains.created_at, berth_drains.created_by
FROM berth_drains

-- store.named._DRAINS[1]
SELECT berth_drains.name, berth_drains.id, berth_drains.generation, berth_drains.effect, berth_drains.reason, berth_drains.created_at, berth_drains.created_by
FROM berth_drains
WHERE berth_drains.name = %s

-- store.named._DRAINS[2]
SELECT berth_drains.id
FROM berth_drains

-- store.named._DRAINS[3]
INSERT INTO berth_drains (id, name, generation, effect, reason, created_at, created_by) VALUES (%s, %s, %s, %s, %s, %s, %s)

-- store.named._DRAINS[4]
UPDATE berth_drains SET generation=(berth_drains.generation + %s), effect=%s, reason=%s WHERE berth_drains.id = %s AND berth_drains.generation = %s

-- store.named._DRAINS[5]
DELETE FROM berth_drains WHERE berth_drains.id = %s AND berth_drains.generation = %s

-- store.named._FLAVORS[0]
SELECT berth_flavors.name, berth_flavors.request, berth_flavors.expose, berth_flavors.description
FROM berth_flavors

-- store.named._FLAVORS[1]
SELECT berth_flavors.name, berth_flavors.request, berth_flavors.expose, berth_flavors.description
FROM berth_flavors
WHERE berth_flavors.name = %s

-- store.named._FLAVORS[2]
SELECT berth_flavors.id
FROM berth_flavors

-- store.named._FLAVORS[3]
INSERT INTO berth_flavors (id, name, request, expose, description) VALUES (%s, %s, %s, %s, %s)

-- store.named._FLAVORS[4]
UPDATE berth_flavors SET request=%s, expose=%s, description=%s WHERE berth_flavors.name = %s

-- store.named._FLAVORS[5]
DELETE FROM berth_flavors WHERE berth_flavors.name = %s

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
WHERE berth_labels.aggregate_uuid = %s

-- store.named._LABELS[2]
SELECT berth_labels.id
FROM berth_labels

-- store.named._LABELS[3]
INSERT INTO berth_labels (aggregate_uuid, name, labels) VALUES (%s, %s, %s)

-- store.named._LABELS[4]
UPDATE berth_labels SET name=%s, labels=%s WHERE berth_labels.aggregate_uuid = %s

-- store.named._LABELS[5]
DELETE FROM berth_labels WHERE berth_labels.aggregate_uuid = %s

-- store.named._OF_AGGREGATE_OR_NAME
SELECT berth_labels.aggregate_uuid, berth_labels.name, berth_labels.labels
FROM berth_labels
WHERE berth_labels.aggregate_uuid = %s OR berth_labels.name = %s

-- store.named._PROVIDERS
SELECT berth_drained.provider_id, berth_drained.provider_uuid
FROM berth_drained
WHERE berth_drained.drain_id = %s

-- store.named._REMOVE
DELETE FROM berth_drained WHERE berth_drained.drain_id = %s AND berth_drained.provider_id IN (__[POSTCOMPILE_providers])

-- store.named._REMOVE_ALL
DELETE FROM berth_drained WHERE berth_drained.drain_id = %s

-- store.placements._HOLDING
SELECT consumers.uuid, consumers.generation, berth_leases.expires_at, resource_providers.id, resource_providers.uuid AS uuid_1, resource_classes.id AS id_1, resource_classes.name, allocations.used
FROM consumers LEFT OUTER JOIN berth_leases ON berth_leases.consumer_uuid = consumers.uuid AND berth_leases.consumer_id = consumers.id AND berth_leases.consumer_created_at <=> consumers.created_at AND berth_leases.consumer_generation = consumers.generation LEFT OUTER JOIN allocations ON allocations.consumer_id = consumers.uuid LEFT OUTER JOIN resource_providers ON resource_providers.id = allocations.resource_provider_id LEFT OUTER JOIN resource_classes ON resource_classes.id = allocations.resource_class_id
WHERE consumers.uuid IN (__[POSTCOMPILE_consumers]) ORDER BY allocations.id

-- store.placements._PLACEMENTS
SELECT berth_placements.consumer_uuid, berth_placements.digest, berth_placements.allocations_digest, berth_placements.host_uuid, berth_placements.mappings, berth_placements.request
FROM berth_placements
WHERE berth_placements.consumer_uuid IN (__[POSTCOMPILE_consumers])

-- store.provider_trees.RENAME
UPDATE resource_providers SET updated_at=%s, name=%s WHERE resource_providers.id = %s

-- store.provider_trees._BY_NAME
SELECT resource_providers.uuid, resource_providers.name
FROM resource_providers
WHERE resource_providers.name IN (__[POSTCOMPILE_names])

-- store.provider_trees._INSERT
INSERT INTO resource_providers (created_at, uuid, name, generation) VALUES (%s, %s, %s, %s)

-- store.provider_trees._IN_USE
SELECT DISTINCT allocations.resource_provider_id, resource_classes.name
FROM allocations INNER JOIN resource_classes ON resource_classes.id = allocations.resource_class_id
WHERE allocations.resource_provider_id IN (__[POSTCOMPILE_providers])

-- store.provider_trees._PLACE
UPDATE resource_providers SET root_provider_id=%s, parent_provider_id=%s WHERE resource_providers.id = %s

-- store.providers.RENAME
UPDATE resource_providers SET updated_at=%s, name=%s WHERE resource_providers.id = %s

-- store.providers._AN_ALLOCATION
SELECT allocations.id
FROM allocations
WHERE allocations.resource_provider_id = %s
 LIMIT %s

-- store.providers._A_CHILD
SELECT resource_providers.id
FROM resource_providers
WHERE resource_providers.parent_provider_id = %s
 LIMIT %s

-- store.providers._DELETE
DELETE FROM resource_providers WHERE resource_providers.id = %s

-- store.providers._DELETE_PARTS[0]
DELETE FROM resource_provider_traits WHERE resource_provider_traits.resource_provider_id = %s

-- store.providers._DELETE_PARTS[1]
DELETE FROM resource_provider_aggregates WHERE resource_provider_aggregates.resource_provider_id = %s

-- store.providers._DELETE_PARTS[2]
DELETE FROM berth_usages WHERE berth_usages.resource_provider_id = %s

-- store.providers._DELETE_PARTS[3]
DELETE FROM inventories WHERE inventories.resource_provider_id = %s

-- store.providers._DELETE_PARTS[4]
DELETE FROM berth_drained WHERE berth_drained.provider_id = %s

-- store.providers._INSERT_CHILD
INSERT INTO resource_providers (created_at, uuid, name, generation, root_provider_id, parent_provider_id) VALUES (%s, %s, %s, %s, (SELECT root.id
FROM resource_providers AS root
WHERE root.uuid = %s), %s)

-- store.providers._INSERT_ROOT
INSERT INTO resource_providers (created_at, uuid, name, generation) VALUES (%s, %s, %s, %s)

-- store.providers._OTHERS_OF_NAME
SELECT resource_providers.id
FROM resource_providers
WHERE resource_providers.name = %s AND resource_providers.id != %s

-- store.providers._OWN_ROOT
UPDATE resource_providers SET root_provider_id=resource_providers.id WHERE resource_providers.id = %s

-- store.providers._PIN_PLACE
UPDATE resource_providers SET updated_at=utc_timestamp() - INTERVAL (resource_providers.updated_at <=> utc_timestamp()) SECOND, root_provider_id=resource_providers.root_provider_id WHERE resource_providers.id = %s AND resource_providers.root_provider_id = (SELECT root.id
FROM resource_providers AS root
WHERE root.uuid = %s)

-- store.providers._PLACE
UPDATE resource_providers SET parent_provider_id=%s WHERE resource_providers.id = %s AND resource_providers.parent_provider_id <=> %s

-- store.providers._PROVIDER_BY_UUID
SELECT resource_providers.id, resource_providers.uuid, resource_providers.name, resource_providers.generation, parent.uuid AS uuid_1, coalesce(root.uuid, resource_providers.uuid) AS coalesce_1, resource_providers.created_at, resource_providers.updated_at
FROM resource_providers LEFT OUTER JOIN resource_providers AS parent ON parent.id = resource_providers.parent_provider_id LEFT OUTER JOIN resource_providers AS root ON root.id = resource_providers.root_provider_id
WHERE resource_providers.uuid = %s

-- store.providers._REROOT
UPDATE resource_providers SET updated_at=%s, root_provider_id=%s WHERE resource_providers.id IN (__[POSTCOMPILE_providers]) AND resource_providers.root_provider_id = %s

-- store.providers._ROOT_OF
SELECT resource_providers.root_provider_id
FROM resource_providers
WHERE resource_providers.id = %s

-- store.providers._TAKEN
SELECT resource_providers.uuid
FROM resource_providers
WHERE resource_providers.uuid = %s OR resource_providers.name = %s

-- store.providers._TREE
SELECT resource_providers.id, resource_providers.parent_provider_id
FROM resource_providers
WHERE resource_providers.root_provider_id = %s

-- store.providers._UNROOT
UPDATE resource_providers SET root_provider_id=%s WHERE resource_providers.id = %s AND resource_providers.generation = %s

-- store.resource_classes._ALL
SELECT resource_classes.name, coalesce(resource_classes.updated_at, resource_classes.created_at) AS coalesce_1
FROM resource_classes ORDER BY resource_classes.id

-- store.resource_classes._DELETE_UNUSED
DELETE FROM resource_classes WHERE resource_classes.id = %s AND resource_classes.name = %s AND NOT (EXISTS (SELECT *
FROM inventories
WHERE inventories.resource_class_id = %s))

-- store.resource_classes._INSERT
INSERT INTO resource_classes (id, name, created_at) SELECT CASE WHEN (max(resource_classes.id) >= %s) THEN max(resource_classes.id) + %s ELSE %s END AS anon_1, %s AS anon_2, %s AS anon_3
FROM resource_classes

-- store.resource_classes._IS_USED
SELECT inventories.id
FROM inventories
WHERE inventories.resource_class_id = %s
 LIMIT %s

-- store.resource_classes._OF_NAME
SELECT resource_classes.name, coalesce(resource_classes.updated_at, resource_classes.created_at) AS coalesce_1
FROM resource_classes
WHERE resource_classes.name = %s

-- store.resource_classes._RENAME
UPDATE resource_classes SET updated_at=%s, name=%s WHERE resource_classes.id = %s AND resource_classes.name = %s

-- store.resource_classes._WITH_CLASS
SELECT inventories.resource_provider_id
FROM inventories
WHERE inventories.resource_class_id = %s

-- store.traits._DELETE_UNUSED
DELETE FROM traits WHERE traits.id = %s AND NOT (EXISTS (SELECT *
FROM resource_provider_traits
WHERE resource_provider_traits.trait_id = %s))

-- store.traits._GIVE
INSERT INTO resource_provider_traits (created_at, trait_id, resource_provider_id) VALUES (%s, %s, %s)

-- store.traits._IDS_OF_PROVIDER
SELECT resource_provider_traits.trait_id
FROM resource_provider_traits
WHERE resource_provider_traits.resource_provider_id = %s

-- store.traits._IS_USED
SELECT resource_provider_traits.trait_id
FROM resource_provider_traits
WHERE resource_provider_traits.trait_id = %s
 LIMIT %s

-- store.traits._RECORD
SELECT traits.name, traits.created_at, traits.updated_at
FROM traits
WHERE traits.name = %s

-- store.traits._TAKE
DELETE FROM resource_provider_traits WHERE resource_provider_traits.resource_provider_id = %s AND resource_provider_traits.trait_id IN (__[POSTCOMPILE_traits])

-- store.traits._TRAITS_OF_PROVIDER
SELECT traits.name, coalesce(traits.updated_at, traits.created_at) AS coalesce_1
FROM traits INNER JOIN resource_provider_traits ON resource_provider_traits.trait_id = traits.id
WHERE resource_provider_traits.resource_provider_id = %s ORDER BY traits.id

-- store.tree_rows._AGGREGATES
SELECT resource_provider_aggregates.resource_provider_id, placement_aggregates.uuid
FROM resource_provider_aggregates INNER JOIN resource_providers ON resource_providers.id = resource_provider_aggregates.resource_provider_id INNER JOIN placement_aggregates ON placement_aggregates.id = resource_provider_aggregates.aggregate_id
WHERE resource_providers.root_provider_id = %s

-- store.tree_rows._IDS
SELECT resource_providers.id
FROM resource_providers
WHERE resource_providers.root_provider_id = %s

-- store.tree_rows._INVENTORIES
SELECT inventories.resource_provider_id, resource_classes.name, inventories.total, inventories.reserved, inventories.min_unit, inventories.max_unit, inventories.step_size, inventories.allocation_ratio
FROM inventories INNER JOIN resource_providers ON resource_providers.id = inventories.resource_provider_id INNER JOIN resource_classes ON resource_classes.id = inventories.resource_class_id
WHERE resource_providers.root_provider_id = %s

-- store.tree_rows._LOCK
UPDATE resource_providers SET updated_at=utc_timestamp() - INTERVAL (resource_providers.updated_at <=> utc_timestamp()) SECOND, generation=resource_providers.generation WHERE resource_providers.id IN (__[POSTCOMPILE_providers]) AND resource_providers.root_provider_id = %s

-- store.tree_rows._PROVIDERS
SELECT resource_providers.id, resource_providers.uuid, resource_providers.generation, resource_providers.name, resource_providers.parent_provider_id
FROM resource_providers
WHERE resource_providers.root_provider_id = %s ORDER BY resource_providers.id

-- store.tree_rows._ROOTS
SELECT resource_providers.uuid, resource_providers.name, resource_providers.root_provider_id
FROM resource_providers
WHERE resource_providers.uuid = %s OR resource_providers.name = %s

-- store.tree_rows._TRAITS
SELECT resource_provider_traits.resource_provider_id, traits.name
FROM resource_provider_traits INNER JOIN resource_providers ON resource_providers.id = resource_provider_traits.resource_provider_id INNER JOIN traits ON traits.id = resource_provider_traits.trait_id
WHERE resource_providers.root_provider_id = %s

-- store.usage_counts._CORRECT
UPDATE berth_usages SET used=%s WHERE berth_usages.resource_provider_id = %s AND berth_usages.resource_class_id = %s AND berth_usages.used = %s

-- store.usage_counts._COUNT
SELECT count(*) AS count_1
FROM inventories

-- store.usage_counts._FORGET
DELETE FROM berth_usages WHERE berth_usages.resource_provider_id = %s AND berth_usages.resource_class_id = %s AND berth_usages.used = %s

-- store.usage_counts._HOLD
UPDATE resource_providers SET updated_at=utc_timestamp() - INTERVAL (resource_providers.updated_at <=> utc_timestamp()) SECOND, generation=resource_providers.generation WHERE resource_providers.id = %s

-- store.usage_counts._LAST_OF_PART
SELECT inventories.resource_provider_id
FROM inventories
WHERE inventories.resource_provider_id > %s ORDER BY inventories.resource_provider_id
 LIMIT %s, %s

-- store.usage_counts._LEVEL
UPDATE berth_usages SET generation=(SELECT resource_providers.generation
FROM resource_providers
WHERE resource_providers.id = berth_usages.resource_provider_id) WHERE berth_usages.resource_provider_id = %s

-- store.usage_counts._MISSING_OF_PART
INSERT INTO berth_usages (resource_provider_id, resource_class_id, used, generation) SELECT inventories.resource_provider_id, inventories.resource_class_id, CAST(coalesce(counted.used, %s) AS SIGNED INTEGER) AS counted, (SELECT resource_providers.generation
FROM resource_providers
WHERE resource_providers.id = inventories.resource_provider_id) AS anon_1
FROM inventories LEFT OUTER JOIN (SELECT allocations.resource_provider_id AS resource_provider_id, allocations.resource_class_id AS resource_class_id, sum(allocations.used) AS used
FROM allocations
WHERE allocations.resource_provider_id > %s AND allocations.resource_provider_id <= %s GROUP BY allocations.resource_provider_id, allocations.resource_class_id) AS counted ON counted.resource_provider_id = inventories.resource_provider_id AND counted.resource_class_id = inventories.resource_class_id LEFT OUTER JOIN berth_usages ON berth_usages.resource_provider_id = inventories.resource_provider_id AND berth_usages.resource_class_id = inventories.resource_class_id
WHERE inventories.resource_provider_id > %s AND inventories.resource_provider_id <= %s AND berth_usages.used IS NULL

-- store.usage_counts._MOVED_OF_PART
SELECT resource_providers.id, resource_providers.generation, max(berth_usages.generation) AS known
FROM resource_providers INNER JOIN berth_usages ON berth_usages.resource_provider_id = resource_providers.id
WHERE resource_providers.id > %s AND resource_providers.id <= %s GROUP BY resource_providers.id, resource_providers.generation
HAVING coalesce(max(berth_usages.generation), %s) != coalesce(resource_providers.generation, %s)

-- store.usage_counts._OF_PART[0]
SELECT inventories.resource_provider_id, inventories.resource_class_id, berth_usages.used, CAST(coalesce(counted.used, %s) AS SIGNED INTEGER) AS counted
FROM inventories LEFT OUTER JOIN (SELECT allocations.resource_provider_id AS resource_provider_id, allocations.resource_class_id AS resource_class_id, sum(allocations.used) AS used
FROM allocations
WHERE allocations.resource_provider_id > %s AND allocations.resource_provider_id <= %s GROUP BY allocations.resource_provider_id, allocations.resource_class_id) AS counted ON counted.resource_provider_id = inventories.resource_provider_id AND counted.resource_class_id = inventories.resource_class_id LEFT OUTER JOIN berth_usages ON berth_usages.resource_provider_id = inventories.resource_provider_id AND berth_usages.resource_class_id = inventories.resource_class_id
WHERE (berth_usages.used IS NULL OR berth_usages.used != CAST(coalesce(counted.used, %s) AS SIGNED INTEGER)) AND inventories.resource_provider_id > %s AND inventories.resource_provider_id <= %s

-- store.usage_counts._OF_PART[1]
SELECT berth_usages.resource_provider_id, berth_usages.resource_class_id, berth_usages.used
FROM berth_usages
WHERE NOT (EXISTS (SELECT *
FROM inventories
WHERE inventories.resource_provider_id = berth_usages.resource_provider_id AND inventories.resource_class_id = berth_usages.resource_class_id)) AND berth_usages.resource_provider_id > %s AND berth_usages.resource_provider_id <= %s

-- store.usage_counts._OF_SOME[0]
SELECT inventories.resource_provider_id, inventories.resource_class_id, berth_usages.used, CAST(coalesce(counted.used, %s) AS SIGNED INTEGER) AS counted
FROM inventories LEFT OUTER JOIN (SELECT allocations.resource_provider_id AS resource_provider_id, allocations.resource_class_id AS resource_class_id, sum(allocations.used) AS used
FROM allocations
WHERE allocations.resource_provider_id IN (__[POSTCOMPILE_providers]) GROUP BY allocations.resource_provider_id, allocations.resource_class_id) AS counted ON counted.resource_provider_id = inventories.resource_provider_id AND counted.resource_class_id = inventories.resource_class_id LEFT OUTER JOIN berth_usages ON berth_usages.resource_provider_id = inventories.resource_provider_id AND berth_usages.resource_class_id = inventories.resource_class_id
WHERE (berth_usages.used IS NULL OR berth_usages.used != CAST(coalesce(counted.used, %s) AS SIGNED INTEGER)) AND inventories.resource_provider_id IN (__[POSTCOMPILE_providers])

-- store.usage_counts._OF_SOME[1]
SELECT berth_usages.resource_provider_id, berth_usages.resource_class_id, berth_usages.used
FROM berth_usages
WHERE NOT (EXISTS (SELECT *
FROM inventories
WHERE inventories.resource_provider_id = berth_usages.resource_provider_id AND inventories.resource_class_id = berth_usages.resource_class_id)) AND berth_usages.resource_provider_id IN (__[POSTCOMPILE_providers])

-- store.usages._ANY
SELECT berth_project_usages.writer_id
FROM berth_project_usages
 LIMIT %s

-- store.usages._CORRECT[0]
UPDATE berth_project_usages SET used_0=%s WHERE berth_project_usages.project_id = %s AND berth_project_usages.user_id = %s AND berth_project_usages.consumer_type_id = %s AND berth_project_usages.first_class = %s AND berth_project_usages.writer_id = %s AND berth_project_usages.used_0 = %s

-- store.usages._CORRECT[1]
UPDATE berth_project_usages SET used_1=%s WHERE berth_project_usages.project_id = %s AND berth_project_usages.user_id = %s AND berth_project_usages.consumer_type_id = %s AND berth_project_usages.first_class = %s AND berth_project_usages.writer_id = %s AND berth_project_usages.used_1 = %s

-- store.usages._CORRECT[2]
UPDATE berth_project_usages SET used_2=%s WHERE berth_project_usages.project_id = %s AND berth_project_usages.user_id = %s AND berth_project_usages.consumer_type_id = %s AND berth_project_usages.first_class = %s AND berth_project_usages.writer_id = %s AND berth_project_usages.used_2 = %s

-- store.usages._CORRECT[3]
UPDATE berth_project_usages SET used_3=%s WHERE berth_project_usages.project_id = %s AND berth_project_usages.user_id = %s AND berth_project_usages.consumer_type_id = %s AND berth_project_usages.first_class = %s AND berth_project_usages.writer_id = %s AND berth_project_usages.used_3 = %s

-- store.usages._COUNT_OF
SELECT consumers.project_id, consumers.user_id, coalesce(consumers.consumer_type_id, 0) AS coalesce_1, -1, count(*) AS count_1
FROM consumers
WHERE (EXISTS (SELECT *
FROM allocations
WHERE allocations.consumer_id = consumers.uuid)) AND consumers.uuid IN (__[POSTCOMPILE_consumers]) GROUP BY consumers.project_id, consumers.user_id, coalesce(consumers.consumer_type_id, 0)

-- store.usages._FILL
INSERT INTO berth_project_usages (project_id, user_id, consumer_type_id, first_class, writer_id, used_0, used_1, used_2, used_3) SELECT placed.project_id, placed.user_id, placed.consumer_type_id, placed.first_class, 0, sum(CASE WHEN (placed.place = 0) THEN placed.counted ELSE 0 END) AS sum_1, sum(CASE WHEN (placed.place = 1) THEN placed.counted ELSE 0 END) AS sum_2, sum(CASE WHEN (placed.place = 2) THEN placed.counted ELSE 0 END) AS sum_3, sum(CASE WHEN (placed.place = 3) THEN placed.counted ELSE 0 END) AS sum_4
FROM (SELECT counted.project_id AS project_id, counted.user_id AS user_id, counted.coalesce_1 AS consumer_type_id, counted.resource_class_id - (counted.resource_class_id - %s) %% 4 AS first_class, (counted.resource_class_id - %s) %% 4 AS place, counted.sum_5 AS counted
FROM (SELECT consumers.project_id AS project_id, consumers.user_id AS user_id, coalesce(consumers.consumer_type_id, 0) AS coalesce_1, allocations.resource_class_id AS resource_class_id, sum(allocations.used) AS sum_5
FROM allocations INNER JOIN consumers ON consumers.uuid = allocations.consumer_id GROUP BY consumers.project_id, consumers.user_id, coalesce(consumers.consumer_type_id, 0), allocations.resource_class_id UNION ALL SELECT consumers.project_id AS project_id, consumers.user_id AS user_id, coalesce(consumers.consumer_type_id, 0) AS coalesce_1, -1, count(*) AS count_1
FROM consumers
WHERE EXISTS (SELECT *
FROM allocations
WHERE allocations.consumer_id = consumers.uuid) GROUP BY consumers.project_id, consumers.user_id, coalesce(consumers.consumer_type_id, 0)) AS counted) AS placed GROUP BY placed.project_id, placed.user_id, placed.consumer_type_id, placed.first_class

-- store.usages._MARKED
SELECT CAST(sum(berth_project_usages.used_0) AS SIGNED INTEGER) AS sum_1
FROM berth_project_usages
WHERE berth_project_usages.project_id = %s
HAVING sum(berth_project_usages.used_0) != 0

-- store.usages._OF_PROJECT
SELECT consumer_types.name, sums.first_class, resource_classes.id, resource_classes.name AS class_name, sums.used_0, sums.used_1, sums.used_2, sums.used_3
FROM (SELECT berth_project_usages.consumer_type_id AS consumer_type_id, berth_project_usages.first_class AS first_class, sum(berth_project_usages.used_0) AS used_0, sum(berth_project_usages.used_1) AS used_1, sum(berth_project_usages.used_2) AS used_2, sum(berth_project_usages.used_3) AS used_3
FROM berth_project_usages INNER JOIN projects ON projects.id = berth_project_usages.project_id
WHERE projects.external_id = %s GROUP BY berth_project_usages.consumer_type_id, berth_project_usages.first_class) AS sums INNER JOIN resource_classes ON resource_classes.id BETWEEN sums.first_class AND sums.first_class + 3 LEFT OUTER JOIN consumer_types ON consumer_types.id = sums.consumer_type_id UNION ALL SELECT NULL AS anon_1, -2, -2, NULL AS anon__1, sum(berth_project_usages.used_0) AS sum_1, sum(berth_project_usages.used_1) AS sum_2, sum(berth_project_usages.used_2) AS sum_3, sum(berth_project_usages.used_3) AS sum_4
FROM berth_project_usages
WHERE berth_project_usages.project_id = %s
HAVING sum(berth_project_usages.used_0) != 0

-- store.usages._OF_USER
SELECT consumer_types.name, sums.first_class, resource_classes.id, resource_classes.name AS class_name, sums.used_0, sums.used_1, sums.used_2, sums.used_3
FROM (SELECT berth_project_usages.consumer_type_id AS consumer_type_id, berth_project_usages.first_class AS first_class, sum(berth_project_usages.used_0) AS used_0, sum(berth_project_usages.used_1) AS used_1, sum(berth_project_usages.used_2) AS used_2, sum(berth_project_usages.used_3) AS used_3
FROM berth_project_usages INNER JOIN projects ON projects.id = berth_project_usages.project_id
WHERE projects.external_id = %s AND berth_project_usages.user_id IN (SELECT users.id
FROM users
WHERE users.external_id = %s) GROUP BY berth_project_usages.consumer_type_id, berth_project_usages.first_class) AS sums INNER JOIN resource_classes ON resource_classes.id BETWEEN sums.first_class AND sums.first_class + 3 LEFT OUTER JOIN consumer_types ON consumer_types.id = sums.consumer_type_id UNION ALL SELECT NULL AS anon_1, -2, -2, NULL AS anon__1, sum(berth_project_usages.used_0) AS sum_1, sum(berth_project_usages.used_1) AS sum_2, sum(berth_project_usages.used_2) AS sum_3, sum(berth_project_usages.used_3) AS sum_4
FROM berth_project_usages
WHERE berth_project_usages.project_id = %s
HAVING sum(berth_project_usages.used_0) != 0

-- store.usages._USED_BY
SELECT consumers.project_id, consumers.user_id, coalesce(consumers.consumer_type_id, 0) AS coalesce_1, allocations.resource_class_id, sum(allocations.used) AS sum_1, allocations.resource_provider_id
FROM allocations INNER JOIN consumers ON consumers.uuid = allocations.consumer_id
WHERE consumers.uuid IN (__[POSTCOMPILE_consumers]) GROUP BY consumers.project_id, consumers.user_id, coalesce(consumers.consumer_type_id, 0), allocations.resource_class_id, allocations.resource_provider_id

-- store.usages._WRONG_PART
SELECT anon_1.project_id, anon_1.user_id, anon_1.consumer_type_id, anon_1.resource_class_id, CAST(sum(anon_1.`stored`) AS SIGNED INTEGER) AS `stored`, CAST(sum(anon_1.counted) AS SIGNED INTEGER) AS counted, CAST(sum(anon_1.corrected) AS SIGNED INTEGER) AS corrected
FROM (SELECT berth_project_usages.project_id AS project_id, berth_project_usages.user_id AS user_id, berth_project_usages.consumer_type_id AS consumer_type_id, berth_project_usages.first_class + 0 AS resource_class_id, berth_project_usages.used_0 AS `stored`, 0 AS counted, CASE WHEN (berth_project_usages.writer_id = %s) THEN berth_project_usages.used_0 ELSE 0 END AS corrected
FROM berth_project_usages UNION ALL SELECT berth_project_usages.project_id AS project_id, berth_project_usages.user_id AS user_id, berth_project_usages.consumer_type_id AS consumer_type_id, berth_project_usages.first_class + 1 AS resource_class_id, berth_project_usages.used_1 AS `stored`, 0 AS counted, CASE WHEN (berth_project_usages.writer_id = %s) THEN berth_project_usages.used_1 ELSE 0 END AS corrected
FROM berth_project_usages UNION ALL SELECT berth_project_usages.project_id AS project_id, berth_project_usages.user_id AS user_id, berth_project_usages.consumer_type_id AS consumer_type_id, berth_project_usages.first_class + 2 AS resource_class_id, berth_project_usages.used_2 AS `stored`, 0 AS counted, CASE WHEN (berth_project_usages.writer_id = %s) THEN berth_project_usages.used_2 ELSE 0 END AS corrected
FROM berth_project_usages UNION ALL SELECT berth_project_usages.project_id AS project_id, berth_project_usages.user_id AS user_id, berth_project_usages.consumer_type_id AS consumer_type_id, berth_project_usages.first_class + 3 AS resource_class_id, berth_project_usages.used_3 AS `stored`, 0 AS counted, CASE WHEN (berth_project_usages.writer_id = %s) THEN berth_project_usages.used_3 ELSE 0 END AS corrected
FROM berth_project_usages UNION ALL SELECT counted.project_id AS project_id, counted.user_id AS user_id, counted.coalesce_1 AS coalesce_1, counted.resource_class_id AS resource_class_id, 0, counted.sum_1 AS sum_1, 0
FROM (SELECT consumers.project_id AS project_id, consumers.user_id AS user_id, coalesce(consumers.consumer_type_id, 0) AS coalesce_1, allocations.resource_class_id AS resource_class_id, sum(allocations.used) AS sum_1
FROM allocations INNER JOIN consumers ON consumers.uuid = allocations.consumer_id GROUP BY consumers.project_id, consumers.user_id, coalesce(consumers.consumer_type_id, 0), allocations.resource_class_id UNION ALL SELECT consumers.project_id AS project_id, consumers.user_id AS user_id, coalesce(consumers.consumer_type_id, 0) AS coalesce_1, -1, count(*) AS count_1
FROM consumers
WHERE EXISTS (SELECT *
FROM allocations
WHERE allocations.consumer_id = consumers.uuid) GROUP BY consumers.project_id, consumers.user_id, coalesce(consumers.consumer_type_id, 0)) AS counted) AS anon_1 GROUP BY anon_1.project_id, anon_1.user_id, anon_1.consumer_type_id, anon_1.resource_class_id
HAVING sum(anon_1.`stored`) != sum(anon_1.counted)
 LIMIT %s

-- store.usages._count
SELECT consumers.project_id, consumers.user_id, coalesce(consumers.consumer_type_id, 0) AS coalesce_1, -1, count(*) AS count_1
FROM consumers
WHERE EXISTS (SELECT *
FROM allocations
WHERE allocations.consumer_id = consumers.uuid) GROUP BY consumers.project_id, consumers.user_id, coalesce(consumers.consumer_type_id, 0)

-- store.usages._used
SELECT consumers.project_id, consumers.user_id, coalesce(consumers.consumer_type_id, 0) AS coalesce_1, allocations.resource_class_id, sum(allocations.used) AS sum_1
FROM allocations INNER JOIN consumers ON consumers.uuid = allocations.consumer_id GROUP BY consumers.project_id, consumers.user_id, coalesce(consumers.consumer_type_id, 0), allocations.resource_class_id

-- upkeep.copying.run._REFER
UPDATE resource_providers SET root_provider_id=%s, parent_provider_id=%s WHERE resource_providers.id = %s

-- upkeep.integrity.consumers._FORGET
DELETE FROM consumers WHERE consumers.id = %s AND consumers.generation = %s AND NOT (EXISTS (SELECT *
FROM allocations
WHERE allocations.consumer_id = consumers.uuid))

-- upkeep.integrity.consumers._IDLE
SELECT consumers.id AS consumer, consumers.uuid, consumers.generation AS seen
FROM consumers
WHERE consumers.generation >= %s AND NOT (EXISTS (SELECT *
FROM allocations
WHERE allocations.consumer_id = consumers.uuid))

-- upkeep.integrity.consumers._RECORDS
SELECT consumers.id AS consumer, consumers.uuid, consumers.generation AS seen
FROM consumers

-- upkeep.integrity.consumers._RESTART
UPDATE consumers SET updated_at=%s, generation=%s WHERE consumers.id = %s AND consumers.generation < %s

-- upkeep.integrity.consumers._UNRECORDED
SELECT DISTINCT allocations.consumer_id
FROM allocations
WHERE NOT (EXISTS (SELECT *
FROM consumers
WHERE consumers.uuid = allocations.consumer_id))

-- upkeep.integrity.own._FORGET_DRAINED
DELETE FROM berth_drained WHERE berth_drained.drain_id = %s AND berth_drained.provider_id = %s AND (NOT (EXISTS (SELECT *
FROM berth_drains
WHERE berth_drains.id = berth_drained.drain_id)) OR NOT (EXISTS (SELECT *
FROM resource_providers
WHERE berth_drained.provider_id = resource_providers.id AND berth_drained.provider_uuid = resource_providers.uuid)))

-- upkeep.integrity.own._FORGET_LEASE
DELETE FROM berth_leases WHERE berth_leases.id = %s AND NOT (EXISTS (SELECT *
FROM consumers
WHERE berth_leases.consumer_uuid = consumers.uuid AND berth_leases.consumer_id = consumers.id AND berth_leases.consumer_created_at <=> consumers.created_at AND berth_leases.consumer_generation = consumers.generation))

-- upkeep.integrity.own._FORGET_NAME
DELETE FROM berth_consumer_names WHERE berth_consumer_names.id = %s AND NOT (EXISTS (SELECT *
FROM consumers
WHERE consumers.uuid = berth_consumer_names.consumer_uuid))

-- upkeep.integrity.own._FORGET_NOTES
DELETE FROM berth_journal WHERE berth_journal.writer_id = %s AND NOT (EXISTS (SELECT *
FROM berth_writer
WHERE berth_writer.id = berth_journal.writer_id AND berth_writer.seq >= berth_journal.seq))

-- upkeep.integrity.own._FORGET_PLACEMENT
DELETE FROM berth_placements WHERE berth_placements.id = %s

-- upkeep.integrity.stock._INVENTORIES
SELECT inventories.id AS `row`, inventories.resource_provider_id AS provider, named_provider.uuid AS provider_uuid, named_provider.name AS provider_name, inventories.resource_class_id AS class_id, named_class.name AS class_name
FROM inventories LEFT OUTER JOIN resource_providers AS named_provider ON named_provider.id = inventories.resource_provider_id LEFT OUTER JOIN resource_classes AS named_class ON named_class.id = inventories.resource_class_id

-- upkeep.integrity.trees._BAD_GENERATIONS
SELECT resource_providers.generation, resource_providers.id AS provider, named_provider.uuid AS provider_uuid, named_provider.name AS provider_name
FROM resource_providers LEFT OUTER JOIN resource_providers AS named_provider ON named_provider.id = resource_providers.id
WHERE resource_providers.generation IS NULL OR resource_providers.generation < %s

-- upkeep.integrity.trees._RESTART
UPDATE resource_providers SET updated_at=%s, generation=%s WHERE resource_providers.id = %s AND (resource_providers.generation IS NULL OR resource_providers.generation < %s)

-- upkeep.integrity.trees._SET_ROOT
UPDATE resource_providers SET updated_at=%s, root_provider_id=%s WHERE resource_providers.id = %s AND coalesce(resource_providers.root_provider_id, %s) = %s

-- upkeep.left_state._CLOCK
SELECT berth_writer.id, berth_writer.seq
FROM berth_writer
WHERE berth_writer.seq > %s ORDER BY berth_writer.id

-- upkeep.left_state._FLEET[0]
SELECT count(*) AS count_1, coalesce(sum(CAST(resource_providers.id AS SIGNED INTEGER)), %s) AS coalesce_1, coalesce(sum(CAST(resource_providers.generation AS SIGNED INTEGER)), %s) AS coalesce_3, coalesce(sum(CAST(resource_providers.parent_provider_id AS SIGNED INTEGER)), %s) AS coalesce_5, coalesce(sum(CAST(timestampdiff(SECOND, '1970-01-01', coalesce(resource_providers.updated_at, resource_providers.created_at)) AS SIGNED INTEGER)), %s) AS coalesce_7
FROM resource_providers

-- upkeep.left_state._FLEET[1]
SELECT count(*) AS count_1, coalesce(sum(CAST(inventories.id AS SIGNED INTEGER)), %s) AS coalesce_1, coalesce(sum(CAST(inventories.total AS SIGNED INTEGER)), %s) AS coalesce_3, coalesce(sum(CAST(timestampdiff(SECOND, '1970-01-01', coalesce(inventories.updated_at, inventories.created_at)) AS SIGNED INTEGER)), %s) AS coalesce_5
FROM inventories

-- upkeep.left_state._FLEET[2]
SELECT count(*) AS count_1, coalesce(sum(CAST(resource_provider_traits.trait_id AS SIGNED INTEGER)), %s) AS coalesce_1
FROM resource_provider_traits

-- upkeep.left_state._FLEET[3]
SELECT count(*) AS count_1, coalesce(sum(CAST(resource_provider_aggregates.aggregate_id AS SIGNED INTEGER)), %s) AS coalesce_1, coalesce(sum(CAST(CAST(resource_provider_aggregates.aggregate_id AS SIGNED INTEGER) * resource_provider_aggregates.resource_provider_id AS SIGNED INTEGER)), %s) AS coalesce_3
FROM resource_provider_aggregates

-- upkeep.left_state._FLEET[4]
SELECT count(*) AS count_1, coalesce(sum(CAST(placement_aggregates.id AS SIGNED INTEGER)), %s) AS coalesce_1
FROM placement_aggregates

-- upkeep.left_state._FLEET[5]
SELECT count(*) AS count_1, coalesce(sum(CAST(traits.id AS SIGNED INTEGER)), %s) AS coalesce_1, coalesce(sum(CAST(timestampdiff(SECOND, '1970-01-01', coalesce(traits.updated_at, traits.created_at)) AS SIGNED INTEGER)), %s) AS coalesce_3
FROM traits

-- upkeep.left_state._FLEET[6]
SELECT count(*) AS count_1, coalesce(sum(CAST(resource_classes.id AS SIGNED INTEGER)), %s) AS coalesce_1, coalesce(sum(CAST(timestampdiff(SECOND, '1970-01-01', coalesce(resource_classes.updated_at, resource_classes.created_at)) AS SIGNED INTEGER)), %s) AS coalesce_3
FROM resource_classes

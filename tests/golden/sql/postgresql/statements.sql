-- store.aggregates._BY_SPELLING
SELECT placement_aggregates.uuid, placement_aggregates.id
FROM placement_aggregates
WHERE placement_aggregates.uuid IN (__[POSTCOMPILE_spellings])

-- store.aggregates._LEAVE
DELETE FROM resource_provider_aggregates WHERE resource_provider_aggregates.resource_provider_id = %(provider)s::INTEGER

-- store.aggregates._LEAVE_OTHERS
DELETE FROM resource_provider_aggregates WHERE resource_provider_aggregates.resource_provider_id = %(provider)s::INTEGER AND (resource_provider_aggregates.aggregate_id NOT IN (__[POSTCOMPILE_aggregates]))

-- store.aggregates._PROVIDER_AND_AGGREGATES
SELECT 1, resource_providers.uuid AS common_text_1, resource_providers.id, resource_providers.generation
FROM resource_providers
WHERE resource_providers.uuid = %(uuid)s::VARCHAR UNION ALL SELECT 0, placement_aggregates.uuid AS common_text_2, placement_aggregates.id, NULL AS anon_1
FROM placement_aggregates
WHERE placement_aggregates.uuid IN (__[POSTCOMPILE_spellings])

-- store.aggregates._RESPELL
UPDATE placement_aggregates SET updated_at=%(now)s::TIMESTAMP WITHOUT TIME ZONE, uuid=%(free)s::VARCHAR WHERE placement_aggregates.id = %(number)s::INTEGER AND placement_aggregates.uuid = %(spelling)s::VARCHAR

-- store.aggregates._SPELL
UPDATE placement_aggregates SET uuid=%(spelling)s::VARCHAR WHERE placement_aggregates.uuid = %(canonical)s::VARCHAR

-- store.allocations._OF_CONSUMER
SELECT resource_providers.uuid, coalesce(resource_providers.generation, %(coalesce_2)s::INTEGER) AS coalesce_1, resource_classes.name, allocations.used, allocations.created_at, projects.external_id, users.external_id AS external_id_1, consumers.generation, consumer_types.name AS name_1
FROM allocations JOIN resource_providers ON resource_providers.id = allocations.resource_provider_id JOIN resource_classes ON resource_classes.id = allocations.resource_class_id JOIN consumers ON consumers.uuid = allocations.consumer_id JOIN projects ON projects.id = consumers.project_id JOIN users ON users.id = consumers.user_id LEFT OUTER JOIN consumer_types ON consumer_types.id = consumers.consumer_type_id
WHERE allocations.consumer_id = %(consumer)s::VARCHAR ORDER BY allocations.id

-- store.allocations._OF_CONSUMERS
SELECT allocations.resource_provider_id, allocations.resource_class_id, allocations.used
FROM allocations
WHERE allocations.consumer_id IN (__[POSTCOMPILE_consumers])

-- store.allocations._OF_PROVIDER
SELECT consumers.uuid, consumers.generation, resource_classes.name, allocations.used, allocations.created_at, resource_providers.uuid AS uuid_1, coalesce(resource_providers.generation, %(coalesce_2)s::INTEGER) AS coalesce_1
FROM resource_providers LEFT OUTER JOIN allocations ON allocations.resource_provider_id = resource_providers.id LEFT OUTER JOIN resource_classes ON resource_classes.id = allocations.resource_class_id LEFT OUTER JOIN consumers ON consumers.uuid = allocations.consumer_id
WHERE resource_providers.uuid = %(provider)s::VARCHAR ORDER BY allocations.id

-- store.allocations._OF_PROVIDERS
SELECT allocations.resource_provider_id, allocations.consumer_id, allocations.resource_class_id, allocations.used
FROM allocations
WHERE allocations.resource_provider_id IN (__[POSTCOMPILE_providers])

-- store.changes._COUNTED
SELECT berth_journal.provider_id, count(*) AS count_1, min(CAST(berth_journal.usage_only AS INTEGER)) AS min_1, max(berth_journal.gone_uuid) AS max_1
FROM berth_journal
WHERE berth_journal.writer_id = %(writer)s::INTEGER AND berth_journal.seq > %(after)s::BIGINT AND berth_journal.seq <= %(upto)s::BIGINT GROUP BY berth_journal.provider_id

-- store.changes._DELETIONS
SELECT berth_journal.provider_id, berth_journal.gone_uuid
FROM berth_journal
WHERE berth_journal.writer_id = %(writer)s::INTEGER AND berth_journal.seq > %(after)s::BIGINT AND berth_journal.provider_id IN (__[POSTCOMPILE_providers]) AND berth_journal.gone_uuid IS NOT NULL

-- store.changes._ONE_BY_ONE
SELECT berth_journal.provider_id, berth_journal.created_at, berth_journal.seq, berth_journal.gone_uuid
FROM berth_journal
WHERE berth_journal.writer_id = %(writer)s::INTEGER AND berth_journal.seq > %(after)s::BIGINT AND berth_journal.seq <= %(upto)s::BIGINT AND berth_journal.provider_id IN (__[POSTCOMPILE_providers])

-- store.changes._TRIMMED
SELECT berth_writer.id, berth_writer.trimmed_seq
FROM berth_writer

-- store.claim_reads._FACTS
SELECT 1, consumers.uuid AS common_text_1, consumers.id, consumers.generation, consumers.consumer_type_id, consumers.project_id, consumers.user_id, (SELECT berth_consumer_names.id
FROM berth_consumer_names
WHERE berth_consumer_names.consumer_uuid = consumers.uuid) AS anon_1, (SELECT CASE WHEN (berth_leases.consumer_uuid = consumers.uuid AND berth_leases.consumer_id = consumers.id AND berth_leases.consumer_created_at IS NOT DISTINCT FROM consumers.created_at AND berth_leases.consumer_generation = consumers.generation) THEN 1 ELSE 0 END AS anon_3
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
WHERE berth_consumer_names.consumer_uuid = consumers.uuid) AS anon_1, (SELECT CASE WHEN (berth_leases.consumer_uuid = consumers.uuid AND berth_leases.consumer_id = consumers.id AND berth_leases.consumer_created_at IS NOT DISTINCT FROM consumers.created_at AND berth_leases.consumer_generation = consumers.generation) THEN 1 ELSE 0 END AS anon_3
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
WHERE berth_consumer_names.consumer_uuid = consumers.uuid) AS anon_1, (SELECT CASE WHEN (berth_leases.consumer_uuid = consumers.uuid AND berth_leases.consumer_id = consumers.id AND berth_leases.consumer_created_at IS NOT DISTINCT FROM consumers.created_at AND berth_leases.consumer_generation = consumers.generation) THEN 1 ELSE 0 END AS anon_3
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
WHERE berth_consumer_names.consumer_uuid = consumers.uuid) AS anon_1, (SELECT CASE WHEN (berth_leases.consumer_uuid = consumers.uuid AND berth_leases.consumer_id = consumers.id AND berth_leases.consumer_created_at IS NOT DISTINCT FROM consumers.created_at AND berth_leases.consumer_generation = consumers.generation) THEN 1 ELSE 0 END AS anon_3
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
WHERE berth_consumer_names.consumer_uuid = consumers.uuid) AS anon_1, (SELECT CASE WHEN (berth_leases.consumer_uuid = consumers.uuid AND berth_leases.consumer_id = consumers.id AND berth_leases.consumer_created_at IS NOT DISTINCT FROM consumers.created_at AND berth_leases.consumer_generation = consumers.generation) THEN 1 ELSE 0 END AS anon_3
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
WHERE berth_consumer_names.consumer_uuid = consumers.uuid) AS anon_1, (SELECT CASE WHEN (berth_leases.consumer_uuid = consumers.uuid AND berth_leases.consumer_id = consumers.id AND berth_leases.consumer_created_at IS NOT DISTINCT FROM consumers.created_at AND berth_leases.consumer_generation = consumers.generation) THEN 1 ELSE 0 END AS anon_3
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
UPDATE berth_usages SET used=(berth_usages.used + %(delta)s::BIGINT), generation=coalesce(%(generation)s::INTEGER, berth_usages.generation) WHERE berth_usages.resource_provider_id = %(provider)s::INTEGER AND berth_usages.resource_class_id = %(resource_class)s::INTEGER AND (%(generation)s::INTEGER IS NULL OR (SELECT resource_providers.generation
FROM resource_providers
WHERE resource_providers.id = berth_usages.resource_provider_id) = %(generation)s::INTEGER) AND (%(delta)s::BIGINT <= 0 OR (SELECT %(delta)s::BIGINT <= 0 OR berth_usages.used + %(delta)s::BIGINT <= (inventories.total - inventories.reserved) * inventories.allocation_ratio AS anon_1
FROM inventories
WHERE inventories.resource_provider_id = berth_usages.resource_provider_id AND inventories.resource_class_id = berth_usages.resource_class_id))

-- store.claims._CLAIM_USAGE
UPDATE berth_usages SET used=(berth_usages.used + %(delta)s::BIGINT), generation=%(generation)s::INTEGER WHERE berth_usages.resource_provider_id = %(provider)s::INTEGER AND berth_usages.resource_class_id = %(resource_class)s::INTEGER AND (SELECT resource_providers.generation
FROM resource_providers
WHERE resource_providers.id = berth_usages.resource_provider_id) = %(generation)s::INTEGER AND (SELECT %(delta)s::BIGINT <= 0 OR berth_usages.used + %(delta)s::BIGINT <= (inventories.total - inventories.reserved) * inventories.allocation_ratio AS anon_1
FROM inventories
WHERE inventories.resource_provider_id = berth_usages.resource_provider_id AND inventories.resource_class_id = berth_usages.resource_class_id AND %(least)s::INTEGER >= inventories.min_unit AND %(most)s::INTEGER <= inventories.max_unit AND %(divisor)s::INTEGER %% nullif(inventories.step_size, 0) = 0)

-- store.claims._INSERT
INSERT INTO allocations (created_at, resource_provider_id, consumer_id, resource_class_id, used) VALUES (%(created_at)s::TIMESTAMP WITHOUT TIME ZONE, %(resource_provider_id)s::INTEGER, %(consumer_id)s::VARCHAR, %(resource_class_id)s::INTEGER, %(used)s::INTEGER)

-- store.claims._RELEASE
DELETE FROM allocations WHERE allocations.consumer_id IN (__[POSTCOMPILE_consumers])

-- store.claims._RELEASE_USAGE
UPDATE berth_usages SET used=(berth_usages.used + %(delta)s::BIGINT) WHERE berth_usages.resource_provider_id = %(provider)s::INTEGER AND berth_usages.resource_class_id = %(resource_class)s::INTEGER

-- store.claims._has_room
SELECT %(delta)s::BIGINT <= 0 OR berth_usages.used + %(delta)s::BIGINT <= (inventories.total - inventories.reserved) * inventories.allocation_ratio AS anon_1
FROM berth_usages, inventories
WHERE inventories.resource_provider_id = berth_usages.resource_provider_id AND inventories.resource_class_id = berth_usages.resource_class_id

-- store.confined._HOLDING
SELECT allocations.resource_provider_id
FROM allocations
WHERE allocations.consumer_id = %(consumer)s::VARCHAR

-- store.confined._HOST
SELECT resource_providers.id, resource_providers.uuid, resource_providers.name, resource_providers.root_provider_id
FROM resource_providers
WHERE resource_providers.uuid = %(uuid)s::VARCHAR OR resource_providers.name = %(name)s::VARCHAR

-- store.confined._MEMBERSHIPS
SELECT DISTINCT placement_aggregates.id, placement_aggregates.uuid
FROM placement_aggregates JOIN resource_provider_aggregates ON resource_provider_aggregates.aggregate_id = placement_aggregates.id JOIN resource_providers ON resource_providers.id = resource_provider_aggregates.resource_provider_id
WHERE resource_providers.root_provider_id = %(root)s::INTEGER

-- store.confined._PLACES
SELECT resource_providers.id, resource_providers.name, root.name AS name_1
FROM resource_providers LEFT OUTER JOIN resource_providers AS root ON root.id = resource_providers.root_provider_id
WHERE resource_providers.id IN (__[POSTCOMPILE_providers]) ORDER BY resource_providers.id

-- store.confined._SHARING
SELECT resource_provider_aggregates.aggregate_id, resource_providers.id, resource_providers.name
FROM resource_provider_aggregates JOIN resource_providers ON resource_providers.id = resource_provider_aggregates.resource_provider_id JOIN resource_provider_traits ON resource_provider_traits.resource_provider_id = resource_providers.id JOIN traits ON traits.id = resource_provider_traits.trait_id
WHERE traits.name = %(name_1)s::VARCHAR AND resource_provider_aggregates.aggregate_id IN (__[POSTCOMPILE_aggregates]) ORDER BY resource_providers.id

-- store.consumer_lists._ALLOCATIONS
SELECT allocations.consumer_id, resource_providers.uuid, resource_providers.name, resource_classes.name AS name_1, allocations.used
FROM allocations JOIN resource_providers ON resource_providers.id = allocations.resource_provider_id JOIN resource_classes ON resource_classes.id = allocations.resource_class_id
WHERE allocations.consumer_id IN (__[POSTCOMPILE_consumers]) ORDER BY allocations.id

-- store.consumer_lists._BY_UUID
SELECT consumers.uuid, berth_consumer_names.name, projects.external_id, users.external_id AS external_id_1, consumer_types.name AS name_1, consumers.generation, consumers.created_at, berth_leases.expires_at
FROM consumers JOIN projects ON projects.id = consumers.project_id JOIN users ON users.id = consumers.user_id LEFT OUTER JOIN consumer_types ON consumer_types.id = consumers.consumer_type_id LEFT OUTER JOIN berth_consumer_names ON berth_consumer_names.consumer_uuid = consumers.uuid LEFT OUTER JOIN berth_leases ON berth_leases.consumer_uuid = consumers.uuid AND berth_leases.consumer_id = consumers.id AND berth_leases.consumer_created_at IS NOT DISTINCT FROM consumers.created_at AND berth_leases.consumer_generation = consumers.generation
WHERE consumers.uuid = %(uuid)s::VARCHAR

-- store.consumer_lists._NEXT
SELECT consumers.uuid, berth_consumer_names.name, projects.external_id, users.external_id AS external_id_1, consumer_types.name AS name_1, consumers.generation, consumers.created_at, berth_leases.expires_at
FROM consumers JOIN projects ON projects.id = consumers.project_id JOIN users ON users.id = consumers.user_id LEFT OUTER JOIN consumer_types ON consumer_types.id = consumers.consumer_type_id LEFT OUTER JOIN berth_consumer_names ON berth_consumer_names.consumer_uuid = consumers.uuid LEFT OUTER JOIN berth_leases ON berth_leases.consumer_uuid = consumers.uuid AND berth_leases.consumer_id = consumers.id AND berth_leases.consumer_created_at IS NOT DISTINCT FROM consumers.created_at AND berth_leases.consumer_generation = consumers.generation
WHERE consumers.uuid > %(after)s::VARCHAR ORDER BY consumers.uuid
 LIMIT %(count)s

-- store.consumer_lists._OF_NAME
SELECT consumers.uuid, berth_consumer_names.name, projects.external_id, users.external_id AS external_id_1, consumer_types.name AS name_1, consumers.generation, consumers.created_at, berth_leases.expires_at
FROM consumers JOIN projects ON projects.id = consumers.project_id JOIN users ON users.id = consumers.user_id LEFT OUTER JOIN consumer_types ON consumer_types.id = consumers.consumer_type_id LEFT OUTER JOIN berth_consumer_names ON berth_consumer_names.consumer_uuid = consumers.uuid LEFT OUTER JOIN berth_leases ON berth_leases.consumer_uuid = consumers.uuid AND berth_leases.consumer_id = consumers.id AND berth_leases.consumer_created_at IS NOT DISTINCT FROM consumers.created_at AND berth_leases.consumer_generation = consumers.generation
WHERE consumers.uuid > %(after)s::VARCHAR AND berth_consumer_names.name = %(name)s::VARCHAR ORDER BY consumers.uuid
 LIMIT %(count)s

-- store.consumer_lists._OF_PROJECT
SELECT consumers.uuid, berth_consumer_names.name, projects.external_id, users.external_id AS external_id_1, consumer_types.name AS name_1, consumers.generation, consumers.created_at, berth_leases.expires_at
FROM consumers JOIN projects ON projects.id = consumers.project_id JOIN users ON users.id = consumers.user_id LEFT OUTER JOIN consumer_types ON consumer_types.id = consumers.consumer_type_id LEFT OUTER JOIN berth_consumer_names ON berth_consumer_names.consumer_uuid = consumers.uuid LEFT OUTER JOIN berth_leases ON berth_leases.consumer_uuid = consumers.uuid AND berth_leases.consumer_id = consumers.id AND berth_leases.consumer_created_at IS NOT DISTINCT FROM consumers.created_at AND berth_leases.consumer_generation = consumers.generation
WHERE consumers.uuid > %(after)s::VARCHAR AND projects.external_id = %(project)s::VARCHAR ORDER BY consumers.uuid
 LIMIT %(count)s

-- store.consumer_lists._OF_PROVIDER
SELECT consumers.uuid, berth_consumer_names.name, projects.external_id, users.external_id AS external_id_1, consumer_types.name AS name_1, consumers.generation, consumers.created_at, berth_leases.expires_at
FROM consumers JOIN projects ON projects.id = consumers.project_id JOIN users ON users.id = consumers.user_id LEFT OUTER JOIN consumer_types ON consumer_types.id = consumers.consumer_type_id LEFT OUTER JOIN berth_consumer_names ON berth_consumer_names.consumer_uuid = consumers.uuid LEFT OUTER JOIN berth_leases ON berth_leases.consumer_uuid = consumers.uuid AND berth_leases.consumer_id = consumers.id AND berth_leases.consumer_created_at IS NOT DISTINCT FROM consumers.created_at AND berth_leases.consumer_generation = consumers.generation
WHERE consumers.uuid > %(after)s::VARCHAR AND consumers.uuid IN (SELECT allocations.consumer_id
FROM allocations
WHERE allocations.resource_provider_id = %(provider)s::INTEGER) ORDER BY consumers.uuid
 LIMIT %(count)s

-- store.consumer_lists._OF_PROVIDER_AND_TREE
SELECT consumers.uuid, berth_consumer_names.name, projects.external_id, users.external_id AS external_id_1, consumer_types.name AS name_1, consumers.generation, consumers.created_at, berth_leases.expires_at
FROM consumers JOIN projects ON projects.id = consumers.project_id JOIN users ON users.id = consumers.user_id LEFT OUTER JOIN consumer_types ON consumer_types.id = consumers.consumer_type_id LEFT OUTER JOIN berth_consumer_names ON berth_consumer_names.consumer_uuid = consumers.uuid LEFT OUTER JOIN berth_leases ON berth_leases.consumer_uuid = consumers.uuid AND berth_leases.consumer_id = consumers.id AND berth_leases.consumer_created_at IS NOT DISTINCT FROM consumers.created_at AND berth_leases.consumer_generation = consumers.generation
WHERE consumers.uuid > %(after)s::VARCHAR AND consumers.uuid IN (SELECT allocations.consumer_id
FROM allocations
WHERE allocations.resource_provider_id = %(provider)s::INTEGER) AND consumers.uuid IN (SELECT allocations.consumer_id
FROM allocations JOIN resource_providers ON resource_providers.id = allocations.resource_provider_id
WHERE resource_providers.root_provider_id = %(root)s::INTEGER) ORDER BY consumers.uuid
 LIMIT %(count)s

-- store.consumer_lists._OF_TREE
SELECT consumers.uuid, berth_consumer_names.name, projects.external_id, users.external_id AS external_id_1, consumer_types.name AS name_1, consumers.generation, consumers.created_at, berth_leases.expires_at
FROM consumers JOIN projects ON projects.id = consumers.project_id JOIN users ON users.id = consumers.user_id LEFT OUTER JOIN consumer_types ON consumer_types.id = consumers.consumer_type_id LEFT OUTER JOIN berth_consumer_names ON berth_consumer_names.consumer_uuid = consumers.uuid LEFT OUTER JOIN berth_leases ON berth_leases.consumer_uuid = consumers.uuid AND berth_leases.consumer_id = consumers.id AND berth_leases.consumer_created_at IS NOT DISTINCT FROM consumers.created_at AND berth_leases.consumer_generation = consumers.generation
WHERE consumers.uuid > %(after)s::VARCHAR AND consumers.uuid IN (SELECT allocations.consumer_id
FROM allocations JOIN resource_providers ON resource_providers.id = allocations.resource_provider_id
WHERE resource_providers.root_provider_id = %(root)s::INTEGER) ORDER BY consumers.uuid
 LIMIT %(count)s

-- store.consumer_lists._RECORDS
SELECT consumers.uuid, berth_consumer_names.name, projects.external_id, users.external_id AS external_id_1, consumer_types.name AS name_1, consumers.generation, consumers.created_at, berth_leases.expires_at
FROM consumers JOIN projects ON projects.id = consumers.project_id JOIN users ON users.id = consumers.user_id LEFT OUTER JOIN consumer_types ON consumer_types.id = consumers.consumer_type_id LEFT OUTER JOIN berth_consumer_names ON berth_consumer_names.consumer_uuid = consumers.uuid LEFT OUTER JOIN berth_leases ON berth_leases.consumer_uuid = consumers.uuid AND berth_leases.consumer_id = consumers.id AND berth_leases.consumer_created_at IS NOT DISTINCT FROM consumers.created_at AND berth_leases.consumer_generation = consumers.generation

-- store.consumer_lists._SEARCHED
SELECT consumers.uuid, berth_consumer_names.name, projects.external_id, users.external_id AS external_id_1, consumer_types.name AS name_1, consumers.generation, consumers.created_at, berth_leases.expires_at
FROM consumers JOIN projects ON projects.id = consumers.project_id JOIN users ON users.id = consumers.user_id LEFT OUTER JOIN consumer_types ON consumer_types.id = consumers.consumer_type_id LEFT OUTER JOIN berth_consumer_names ON berth_consumer_names.consumer_uuid = consumers.uuid LEFT OUTER JOIN berth_leases ON berth_leases.consumer_uuid = consumers.uuid AND berth_leases.consumer_id = consumers.id AND berth_leases.consumer_created_at IS NOT DISTINCT FROM consumers.created_at AND berth_leases.consumer_generation = consumers.generation JOIN (SELECT consumers_1.uuid AS uuid
FROM consumers AS consumers_1 JOIN (SELECT consumers_1.uuid AS uuid
FROM consumers AS consumers_1
WHERE consumers_1.uuid BETWEEN %(first)s::VARCHAR AND %(last)s::VARCHAR UNION SELECT berth_consumer_names.consumer_uuid AS consumer_uuid
FROM berth_consumer_names
WHERE berth_consumer_names.name ILIKE %(part)s::VARCHAR ESCAPE '/') AS anon_2 ON anon_2.uuid = consumers_1.uuid
WHERE consumers_1.uuid > %(after)s::VARCHAR ORDER BY consumers_1.uuid
 LIMIT %(count)s) AS anon_1 ON anon_1.uuid = consumers.uuid
WHERE consumers.uuid > %(after)s::VARCHAR ORDER BY consumers.uuid
 LIMIT %(count)s

-- store.consumer_lists._SEARCHED_OF_PROJECT
SELECT consumers.uuid, berth_consumer_names.name, projects.external_id, users.external_id AS external_id_1, consumer_types.name AS name_1, consumers.generation, consumers.created_at, berth_leases.expires_at
FROM consumers JOIN projects ON projects.id = consumers.project_id JOIN users ON users.id = consumers.user_id LEFT OUTER JOIN consumer_types ON consumer_types.id = consumers.consumer_type_id LEFT OUTER JOIN berth_consumer_names ON berth_consumer_names.consumer_uuid = consumers.uuid LEFT OUTER JOIN berth_leases ON berth_leases.consumer_uuid = consumers.uuid AND berth_leases.consumer_id = consumers.id AND berth_leases.consumer_created_at IS NOT DISTINCT FROM consumers.created_at AND berth_leases.consumer_generation = consumers.generation JOIN (SELECT consumers_1.uuid AS uuid
FROM consumers AS consumers_1 JOIN (SELECT consumers_1.uuid AS uuid
FROM consumers AS consumers_1
WHERE consumers_1.uuid BETWEEN %(first)s::VARCHAR AND %(last)s::VARCHAR AND consumers_1.project_id IN (SELECT projects.id
FROM projects
WHERE projects.external_id = %(project)s::VARCHAR) UNION SELECT berth_consumer_names.consumer_uuid AS consumer_uuid
FROM berth_consumer_names
WHERE berth_consumer_names.name ILIKE %(part)s::VARCHAR ESCAPE '/' AND berth_consumer_names.project_id IN (SELECT projects.id
FROM projects
WHERE projects.external_id = %(project)s::VARCHAR)) AS anon_2 ON anon_2.uuid = consumers_1.uuid
WHERE consumers_1.uuid > %(after)s::VARCHAR ORDER BY consumers_1.uuid
 LIMIT %(count)s) AS anon_1 ON anon_1.uuid = consumers.uuid
WHERE consumers.uuid > %(after)s::VARCHAR ORDER BY consumers.uuid
 LIMIT %(count)s

-- store.consumers._BY_NAME
SELECT berth_consumer_names.consumer_uuid, berth_consumer_names.name, projects.external_id
FROM berth_consumer_names JOIN projects ON projects.id = berth_consumer_names.project_id JOIN consumers ON consumers.uuid = berth_consumer_names.consumer_uuid
WHERE projects.external_id = %(project)s::VARCHAR AND berth_consumer_names.name = %(name)s::VARCHAR

-- store.consumers._BY_UUID
SELECT consumers.id, consumers.uuid, consumers.generation, consumers.consumer_type_id, consumers.project_id, consumers.user_id, (SELECT berth_consumer_names.id
FROM berth_consumer_names
WHERE berth_consumer_names.consumer_uuid = consumers.uuid) AS anon_1, (SELECT CASE WHEN (berth_leases.consumer_uuid = consumers.uuid AND berth_leases.consumer_id = consumers.id AND berth_leases.consumer_created_at IS NOT DISTINCT FROM consumers.created_at AND berth_leases.consumer_generation = consumers.generation) THEN 1 ELSE 0 END AS anon_3
FROM berth_leases
WHERE berth_leases.consumer_uuid = consumers.uuid) AS anon_2
FROM consumers
WHERE consumers.uuid IN (__[POSTCOMPILE_uuids])

-- store.consumers._DELETE
DELETE FROM consumers WHERE consumers.id = %(consumer)s::INTEGER AND consumers.generation = %(seen)s::INTEGER

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
INSERT INTO consumers (created_at, uuid, project_id, user_id, generation, consumer_type_id) VALUES (%(created_at)s::TIMESTAMP WITHOUT TIME ZONE, %(uuid)s::VARCHAR, %(project_id)s::INTEGER, %(user_id)s::INTEGER, %(generation)s::INTEGER, %(consumer_type_id)s::INTEGER)

-- store.consumers._INSERT_NAMES
INSERT INTO berth_consumer_names (project_id, name, consumer_uuid) VALUES (%(project_id)s::INTEGER, %(name)s::VARCHAR, %(consumer_uuid)s::VARCHAR)

-- store.consumers._TAKEN
SELECT berth_consumer_names.project_id, berth_consumer_names.name, berth_consumer_names.consumer_uuid, consumers.id
FROM berth_consumer_names LEFT OUTER JOIN consumers ON consumers.uuid = berth_consumer_names.consumer_uuid
WHERE berth_consumer_names.project_id IN (__[POSTCOMPILE_projects]) AND berth_consumer_names.name IN (__[POSTCOMPILE_names])

-- store.consumers._UPDATE
UPDATE consumers SET updated_at=%(now)s::TIMESTAMP WITHOUT TIME ZONE, project_id=%(project)s::INTEGER, user_id=%(user)s::INTEGER, generation=(consumers.generation + %(generation_1)s::INTEGER), consumer_type_id=%(type)s::INTEGER WHERE consumers.id = %(consumer)s::INTEGER AND consumers.generation = %(seen)s::INTEGER

-- store.engine.database._CLOCK
SELECT timezone('UTC', clock_timestamp()) AS server_time_1

-- store.engine.journal._FENCE
UPDATE berth_writer SET seq=(berth_writer.seq + %(seq_1)s::BIGINT), updated_at=%(now)s::TIMESTAMP WITHOUT TIME ZONE WHERE berth_writer.id = %(of_writer)s::INTEGER AND berth_writer.seq = %(known)s::BIGINT

-- store.engine.journal._FORGET
DELETE FROM berth_journal WHERE berth_journal.writer_id = %(of_writer)s::INTEGER AND berth_journal.seq <= %(horizon)s::BIGINT

-- store.engine.journal._HAS_NOTED
SELECT berth_journal.seq
FROM berth_journal
WHERE berth_journal.writer_id = %(of_writer)s::INTEGER AND berth_journal.seq = %(seq)s::BIGINT
 LIMIT %(param_1)s::INTEGER

-- store.engine.journal._HORIZONS
SELECT berth_writer.id, coalesce((SELECT berth_journal.seq - %(seq_1)s::BIGINT AS anon_1
FROM berth_journal
WHERE berth_journal.writer_id = berth_writer.id AND berth_journal.created_at >= %(older_than)s::TIMESTAMP WITHOUT TIME ZONE ORDER BY berth_journal.seq
 LIMIT %(param_1)s::INTEGER), (SELECT max(berth_journal.seq) AS max_1
FROM berth_journal
WHERE berth_journal.writer_id = berth_writer.id)) AS coalesce_1
FROM berth_writer

-- store.engine.journal._IDLE_WRITER
SELECT berth_writer.id, berth_writer.seq
FROM berth_writer
WHERE berth_writer.updated_at < %(before)s::TIMESTAMP WITHOUT TIME ZONE ORDER BY berth_writer.id
 LIMIT %(param_1)s::INTEGER

-- store.engine.journal._MARK
UPDATE berth_writer SET trimmed_seq=%(horizon)s::BIGINT WHERE berth_writer.id = %(of_writer)s::INTEGER AND berth_writer.trimmed_seq < %(horizon)s::BIGINT

-- store.engine.journal._MOVE
UPDATE berth_writer SET seq=(berth_writer.seq + %(seq_1)s::BIGINT), updated_at=%(now)s::TIMESTAMP WITHOUT TIME ZONE WHERE berth_writer.id = %(of_writer)s::INTEGER AND berth_writer.seq = %(known)s::BIGINT

-- store.engine.journal._NEW_WRITER
INSERT INTO berth_writer (seq, trimmed_seq, updated_at) VALUES (%(seq)s::BIGINT, %(trimmed_seq)s::BIGINT, %(now)s::TIMESTAMP WITHOUT TIME ZONE) RETURNING berth_writer.id

-- store.engine.journal._NOTE
INSERT INTO berth_journal (writer_id, seq, provider_id, usage_only, created_at, gone_uuid) VALUES (%(writer_id)s::INTEGER, %(seq)s::BIGINT, %(provider_id)s::INTEGER, %(usage_only)s, %(created_at)s::TIMESTAMP WITHOUT TIME ZONE, %(gone_uuid)s::VARCHAR)

-- store.engine.placement_sweep._DELETE
DELETE FROM berth_placements WHERE berth_placements.id > %(after)s::INTEGER AND berth_placements.id <= %(last)s::INTEGER AND berth_placements.created_at < %(older_than)s::TIMESTAMP WITHOUT TIME ZONE AND NOT (EXISTS (SELECT allocations.id
FROM allocations
WHERE allocations.consumer_id = berth_placements.consumer_uuid))

-- store.engine.placement_sweep._LAST_OF_PART
SELECT max(anon_1.id) AS max_1
FROM (SELECT berth_placements.id AS id
FROM berth_placements
WHERE berth_placements.id > %(after)s::INTEGER ORDER BY berth_placements.id
 LIMIT %(count)s) AS anon_1

-- store.engine.placement_sweep._NEWEST
SELECT coalesce(max(berth_placements.id), %(coalesce_2)s::INTEGER) AS coalesce_1
FROM berth_placements

-- store.engine.project_usages._ADD
UPDATE berth_project_usages SET used_0=(berth_project_usages.used_0 + %(added_0)s::BIGINT), used_1=(berth_project_usages.used_1 + %(added_1)s::BIGINT), used_2=(berth_project_usages.used_2 + %(added_2)s::BIGINT), used_3=(berth_project_usages.used_3 + %(added_3)s::BIGINT) WHERE berth_project_usages.project_id = %(project_id)s::INTEGER AND berth_project_usages.user_id = %(user_id)s::INTEGER AND berth_project_usages.consumer_type_id = %(consumer_type_id)s::INTEGER AND berth_project_usages.first_class = %(first_class)s::INTEGER AND berth_project_usages.writer_id = %(writer_id)s::INTEGER

-- store.engine.project_usages._BEGIN
INSERT INTO berth_project_usages (project_id, user_id, consumer_type_id, first_class, writer_id, used_0, used_1, used_2, used_3) VALUES (%(project_id)s::INTEGER, %(user_id)s::INTEGER, %(consumer_type_id)s::INTEGER, %(first_class)s::INTEGER, %(writer_id)s::INTEGER, %(used_0)s::BIGINT, %(used_1)s::BIGINT, %(used_2)s::BIGINT, %(used_3)s::BIGINT)

-- store.engine.project_usages._OF_ENDED_WRITERS
SELECT berth_project_usages.project_id, berth_project_usages.user_id, berth_project_usages.consumer_type_id, berth_project_usages.first_class, berth_project_usages.writer_id, berth_project_usages.used_0, berth_project_usages.used_1, berth_project_usages.used_2, berth_project_usages.used_3
FROM berth_project_usages JOIN berth_writer ON berth_writer.id = berth_project_usages.writer_id
WHERE berth_writer.updated_at < %(before)s::TIMESTAMP WITHOUT TIME ZONE
 LIMIT %(rows_max)s::INTEGER

-- store.engine.project_usages._TAKE
DELETE FROM berth_project_usages WHERE berth_project_usages.project_id = %(project_id)s::INTEGER AND berth_project_usages.user_id = %(user_id)s::INTEGER AND berth_project_usages.consumer_type_id = %(consumer_type_id)s::INTEGER AND berth_project_usages.first_class = %(first_class)s::INTEGER AND berth_project_usages.writer_id = %(writer_id)s::INTEGER AND berth_project_usages.used_0 = %(used_0)s::BIGINT AND berth_project_usages.used_1 = %(used_1)s::BIGINT AND berth_project_usages.used_2 = %(used_2)s::BIGINT AND berth_project_usages.used_3 = %(used_3)s::BIGINT

-- store.foreign_writes._CLASS_NAMES
SELECT resource_classes.id, resource_classes.name
FROM resource_classes

-- store.foreign_writes._MOVED
SELECT resource_providers.id, resource_providers.uuid, resource_providers.name, resource_providers.generation, max(berth_usages.generation) AS known
FROM resource_providers LEFT OUTER JOIN inventories ON inventories.resource_provider_id = resource_providers.id LEFT OUTER JOIN berth_usages ON berth_usages.resource_provider_id = resource_providers.id
WHERE resource_providers.id IN (__[POSTCOMPILE_providers]) AND (inventories.id IS NOT NULL OR berth_usages.resource_provider_id IS NOT NULL) GROUP BY resource_providers.id, resource_providers.uuid, resource_providers.name, resource_providers.generation
HAVING coalesce(max(berth_usages.generation), %(coalesce_1)s::INTEGER) != coalesce(resource_providers.generation, %(coalesce_2)s::INTEGER)

-- store.generations._BUMP
UPDATE resource_providers SET updated_at=%(now)s::TIMESTAMP WITHOUT TIME ZONE, generation=(resource_providers.generation + %(steps)s::INTEGER) WHERE resource_providers.id = %(provider)s::INTEGER AND resource_providers.generation = coalesce(%(seen)s::INTEGER, resource_providers.generation)

-- store.generations._HAS_STOCK
SELECT (EXISTS (SELECT *
FROM inventories
WHERE inventories.resource_provider_id = %(provider)s::INTEGER)) OR (EXISTS (SELECT *
FROM berth_usages
WHERE berth_usages.resource_provider_id = %(provider)s::INTEGER)) AS anon_1

-- store.generations._KEEP
UPDATE berth_usages SET generation=%(generation)s::INTEGER WHERE berth_usages.resource_provider_id = %(provider)s::INTEGER AND (EXISTS (SELECT one.anon_1
FROM (SELECT %(param_1)s::INTEGER AS anon_1
FROM berth_usages AS known
WHERE known.resource_provider_id = %(provider)s::INTEGER AND known.generation = %(seen)s::INTEGER
 LIMIT %(param_2)s::INTEGER) AS one))

-- store.generations._PIN
UPDATE resource_providers SET updated_at=resource_providers.updated_at, generation=resource_providers.generation WHERE resource_providers.id = %(provider)s::INTEGER AND resource_providers.generation = %(seen)s::INTEGER

-- store.identity._INSERT
INSERT INTO berth_meta (key, value) VALUES (%(key)s::VARCHAR, %(value)s::VARCHAR)

-- store.identity._READ
SELECT berth_meta.value
FROM berth_meta
WHERE berth_meta.key = %(key)s::VARCHAR

-- store.identity._REMOVE
DELETE FROM berth_meta WHERE berth_meta.key = %(key)s::VARCHAR

-- store.identity._REWRITE
UPDATE berth_meta SET value=berth_meta.value WHERE berth_meta.key = %(identity)s::VARCHAR

-- store.index_feed._CLASSES
SELECT resource_classes.name, resource_classes.id
FROM resource_classes

-- store.index_feed._HEADS
SELECT berth_writer.id, berth_writer.seq, berth_writer.trimmed_seq
FROM berth_writer

-- store.index_feed._LAST_ROOT_OF_PART
SELECT resource_providers.root_provider_id
FROM resource_providers
WHERE resource_providers.root_provider_id > %(after)s::INTEGER ORDER BY resource_providers.root_provider_id
 LIMIT %(param_1)s::INTEGER OFFSET %(skipped)s::BIGINT

-- store.index_feed._NOTED
SELECT berth_journal.provider_id, min(CAST(berth_journal.usage_only AS INTEGER)) AS min_1
FROM berth_journal
WHERE berth_journal.writer_id = %(writer)s::INTEGER AND berth_journal.seq > %(applied)s::BIGINT GROUP BY berth_journal.provider_id

-- store.index_feed._OF_NO_ROOT
SELECT resource_providers.id, resource_providers.uuid, resource_providers.parent_provider_id, resource_providers.root_provider_id, resource_providers.name, coalesce(resource_providers.generation, %(coalesce_2)s::INTEGER) AS coalesce_1, coalesce(CAST(floor(EXTRACT(epoch FROM coalesce(resource_providers.updated_at, resource_providers.created_at))) AS BIGINT), %(coalesce_4)s::INTEGER) AS coalesce_3
FROM resource_providers
WHERE resource_providers.root_provider_id IS NULL OR resource_providers.root_provider_id < %(root_provider_id_1)s::INTEGER

-- store.index_feed._OF_ROOTS[0]
SELECT resource_providers.id, resource_providers.uuid, resource_providers.parent_provider_id, resource_providers.root_provider_id, resource_providers.name, coalesce(resource_providers.generation, %(coalesce_2)s::INTEGER) AS coalesce_1, coalesce(CAST(floor(EXTRACT(epoch FROM coalesce(resource_providers.updated_at, resource_providers.created_at))) AS BIGINT), %(coalesce_4)s::INTEGER) AS coalesce_3
FROM resource_providers
WHERE resource_providers.root_provider_id IN (__[POSTCOMPILE_roots])

-- store.index_feed._OF_ROOTS[1]
SELECT inventories.resource_provider_id, inventories.resource_class_id, inventories.total, inventories.reserved, inventories.allocation_ratio, coalesce(berth_usages.used, %(coalesce_2)s::INTEGER) AS coalesce_1, inventories.min_unit, inventories.max_unit, inventories.step_size, coalesce(CAST(floor(EXTRACT(epoch FROM coalesce(inventories.updated_at, inventories.created_at))) AS BIGINT), %(coalesce_4)s::INTEGER) AS coalesce_3
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
SELECT resource_providers.id, resource_providers.uuid, resource_providers.parent_provider_id, resource_providers.root_provider_id, resource_providers.name, coalesce(resource_providers.generation, %(coalesce_2)s::INTEGER) AS coalesce_1, coalesce(CAST(floor(EXTRACT(epoch FROM coalesce(resource_providers.updated_at, resource_providers.created_at))) AS BIGINT), %(coalesce_4)s::INTEGER) AS coalesce_3
FROM resource_providers
WHERE resource_providers.root_provider_id > %(after)s::INTEGER AND resource_providers.root_provider_id <= %(upto)s::BIGINT

-- store.index_feed._OF_ROOT_RANGE[1]
SELECT inventories.resource_provider_id, inventories.resource_class_id, inventories.total, inventories.reserved, inventories.allocation_ratio, coalesce(berth_usages.used, %(coalesce_2)s::INTEGER) AS coalesce_1, inventories.min_unit, inventories.max_unit, inventories.step_size, coalesce(CAST(floor(EXTRACT(epoch FROM coalesce(inventories.updated_at, inventories.created_at))) AS BIGINT), %(coalesce_4)s::INTEGER) AS coalesce_3
FROM resource_providers JOIN inventories ON inventories.resource_provider_id = resource_providers.id LEFT OUTER JOIN berth_usages ON berth_usages.resource_provider_id = inventories.resource_provider_id AND berth_usages.resource_class_id = inventories.resource_class_id
WHERE resource_providers.root_provider_id > %(after)s::INTEGER AND resource_providers.root_provider_id <= %(upto)s::BIGINT

-- store.index_feed._OF_ROOT_RANGE[2]
SELECT resource_provider_traits.resource_provider_id, resource_provider_traits.trait_id
FROM resource_providers JOIN resource_provider_traits ON resource_provider_traits.resource_provider_id = resource_providers.id
WHERE resource_providers.root_provider_id > %(after)s::INTEGER AND resource_providers.root_provider_id <= %(upto)s::BIGINT

-- store.index_feed._OF_ROOT_RANGE[3]
SELECT resource_provider_aggregates.resource_provider_id, resource_provider_aggregates.aggregate_id
FROM resource_providers JOIN resource_provider_aggregates ON resource_provider_aggregates.resource_provider_id = resource_providers.id
WHERE resource_providers.root_provider_id > %(after)s::INTEGER AND resource_providers.root_provider_id <= %(upto)s::BIGINT

-- store.index_feed._OF_ROOT_RANGE[4]
SELECT berth_drained.provider_id, berth_drained.drain_id
FROM resource_providers JOIN berth_drained ON berth_drained.provider_id = resource_providers.id AND berth_drained.provider_uuid = resource_providers.uuid
WHERE resource_providers.root_provider_id > %(after)s::INTEGER AND resource_providers.root_provider_id <= %(upto)s::BIGINT

-- store.index_feed._ROOTS_OF
SELECT resource_providers.root_provider_id
FROM resource_providers
WHERE resource_providers.id IN (__[POSTCOMPILE_providers])

-- store.index_feed._STATES
SELECT resource_providers.id, coalesce(resource_providers.generation, %(coalesce_2)s::INTEGER) AS coalesce_1, coalesce(CAST(floor(EXTRACT(epoch FROM coalesce(resource_providers.updated_at, resource_providers.created_at))) AS BIGINT), %(coalesce_4)s::INTEGER) AS coalesce_3, berth_usages.resource_class_id, berth_usages.used
FROM resource_providers LEFT OUTER JOIN berth_usages ON berth_usages.resource_provider_id = resource_providers.id
WHERE resource_providers.id IN (__[POSTCOMPILE_providers])

-- store.index_feed._TEXTS_OF_ROOT_RANGE[0]
SELECT count(*) AS count_1, string_agg(CAST(resource_providers.id AS TEXT), ',') || ',' AS joined_1, string_agg(CAST(coalesce(resource_providers.uuid, %(coalesce_1)s::VARCHAR) AS TEXT), '
') || '
' AS lines_1, string_agg(CAST(coalesce(resource_providers.parent_provider_id, %(coalesce_2)s::BIGINT) AS TEXT), ',') || ',' AS joined_2, string_agg(CAST(resource_providers.root_provider_id AS TEXT), ',') || ',' AS joined_3, string_agg(CAST(coalesce(resource_providers.name, %(coalesce_3)s::VARCHAR) AS TEXT), '
') || '
' AS lines_2, string_agg(CAST(coalesce(resource_providers.generation, %(coalesce_4)s::INTEGER) AS TEXT), ',') || ',' AS joined_4, string_agg(CAST(coalesce(CAST(floor(EXTRACT(epoch FROM coalesce(resource_providers.updated_at, resource_providers.created_at))) AS BIGINT), %(coalesce_5)s::INTEGER) AS TEXT), ',') || ',' AS joined_5
FROM resource_providers
WHERE resource_providers.root_provider_id > %(after)s::INTEGER AND resource_providers.root_provider_id <= %(upto)s::BIGINT

-- store.index_feed._TEXTS_OF_ROOT_RANGE[1]
SELECT count(*) AS count_1, string_agg(CAST(inventories.resource_provider_id AS TEXT), ',') || ',' AS joined_1, string_agg(CAST(inventories.resource_class_id AS TEXT), ',') || ',' AS joined_2, string_agg(CAST(inventories.total AS TEXT), ',') || ',' AS joined_3, string_agg(CAST(inventories.reserved AS TEXT), ',') || ',' AS joined_4, string_agg(CAST(CASE WHEN (inventories.allocation_ratio BETWEEN %(param_1)s::INTEGER AND %(param_2)s AND round(inventories.allocation_ratio * %(param_3)s) / CAST(%(round_1)s AS FLOAT) = inventories.allocation_ratio) THEN CAST(round(inventories.allocation_ratio * %(param_3)s) AS BIGINT) END AS TEXT), ',') || ',' AS joined_5, string_agg(CAST(coalesce(berth_usages.used, %(coalesce_1)s::INTEGER) AS TEXT), ',') || ',' AS joined_6, string_agg(CAST(inventories.min_unit AS TEXT), ',') || ',' AS joined_7, string_agg(CAST(inventories.max_unit AS TEXT), ',') || ',' AS joined_8, string_agg(CAST(inventories.step_size AS TEXT), ',') || ',' AS joined_9, string_agg(CAST(coalesce(CAST(floor(EXTRACT(epoch FROM coalesce(inventories.updated_at, inventories.created_at))) AS BIGINT), %(coalesce_2)s::INTEGER) AS TEXT), ',') || ',' AS joined_10
FROM resource_providers JOIN inventories ON inventories.resource_provider_id = resource_providers.id LEFT OUTER JOIN berth_usages ON berth_usages.resource_provider_id = inventories.resource_provider_id AND berth_usages.resource_class_id = inventories.resource_class_id
WHERE resource_providers.root_provider_id > %(after)s::INTEGER AND resource_providers.root_provider_id <= %(upto)s::BIGINT

-- store.index_feed._TEXTS_OF_ROOT_RANGE[2]
SELECT count(*) AS count_1, string_agg(CAST(resource_provider_traits.resource_provider_id AS TEXT), ',') || ',' AS joined_1, string_agg(CAST(resource_provider_traits.trait_id AS TEXT), ',') || ',' AS joined_2
FROM resource_providers JOIN resource_provider_traits ON resource_provider_traits.resource_provider_id = resource_providers.id
WHERE resource_providers.root_provider_id > %(after)s::INTEGER AND resource_providers.root_provider_id <= %(upto)s::BIGINT

-- store.index_feed._TEXTS_OF_ROOT_RANGE[3]
SELECT count(*) AS count_1, string_agg(CAST(resource_provider_aggregates.resource_provider_id AS TEXT), ',') || ',' AS joined_1, string_agg(CAST(resource_provider_aggregates.aggregate_id AS TEXT), ',') || ',' AS joined_2
FROM resource_providers JOIN resource_provider_aggregates ON resource_provider_aggregates.resource_provider_id = resource_providers.id
WHERE resource_providers.root_provider_id > %(after)s::INTEGER AND resource_providers.root_provider_id <= %(upto)s::BIGINT

-- store.index_feed._TEXTS_OF_ROOT_RANGE[4]
SELECT berth_drained.provider_id, berth_drained.drain_id
FROM resource_providers JOIN berth_drained ON berth_drained.provider_id = resource_providers.id AND berth_drained.provider_uuid = resource_providers.uuid
WHERE resource_providers.root_provider_id > %(after)s::INTEGER AND resource_providers.root_provider_id <= %(upto)s::BIGINT

-- store.index_feed._TRAITS
SELECT traits.name, traits.id, coalesce(CAST(floor(EXTRACT(epoch FROM coalesce(traits.updated_at, traits.created_at))) AS BIGINT), %(coalesce_2)s::INTEGER) AS coalesce_1
FROM traits

-- store.inventories._CLASS_NAMES
SELECT resource_classes.name
FROM resource_classes
WHERE resource_classes.id IN (__[POSTCOMPILE_classes]) ORDER BY resource_classes.id

-- store.inventories._DELETE
DELETE FROM inventories WHERE inventories.resource_provider_id = %(provider)s::INTEGER AND inventories.resource_class_id = %(resource_class)s::INTEGER

-- store.inventories._DELETE_UNUSED
DELETE FROM berth_usages WHERE berth_usages.resource_provider_id = %(provider)s::INTEGER AND berth_usages.resource_class_id = %(resource_class)s::INTEGER AND berth_usages.used = %(used_1)s::BIGINT

-- store.inventories._INSERT
INSERT INTO inventories (created_at, resource_provider_id, resource_class_id, total, reserved, min_unit, max_unit, step_size, allocation_ratio) VALUES (%(created_at)s::TIMESTAMP WITHOUT TIME ZONE, %(resource_provider_id)s::INTEGER, %(resource_class_id)s::INTEGER, %(total)s::INTEGER, %(reserved)s::INTEGER, %(min_unit)s::INTEGER, %(max_unit)s::INTEGER, %(step_size)s::INTEGER, %(allocation_ratio)s)

-- store.inventories._INSERT_USAGE
INSERT INTO berth_usages (resource_provider_id, resource_class_id, used, generation) SELECT %(provider)s::INTEGER AS anon_1, %(resource_class)s::INTEGER AS anon_2, coalesce(sum(allocations.used), %(coalesce_2)s::INTEGER) AS coalesce_1, %(generation)s::INTEGER AS anon_3
FROM allocations
WHERE allocations.resource_provider_id = %(provider)s::INTEGER AND allocations.resource_class_id = %(resource_class)s::INTEGER

-- store.inventories._KEYS
SELECT inventories.resource_provider_id, inventories.resource_class_id
FROM inventories
WHERE inventories.resource_provider_id IN (__[POSTCOMPILE_providers])

-- store.inventories._KEYS_IN_USE
SELECT berth_usages.resource_provider_id, berth_usages.resource_class_id
FROM berth_usages
WHERE berth_usages.resource_provider_id IN (__[POSTCOMPILE_providers]) AND berth_usages.used > %(used_1)s::BIGINT

-- store.inventories._PIN_CLASSES
UPDATE resource_classes SET updated_at=resource_classes.updated_at, name=resource_classes.name WHERE resource_classes.id IN (__[POSTCOMPILE_classes])

-- store.inventories._STORED
SELECT inventories.resource_provider_id, inventories.resource_class_id, inventories.total, inventories.reserved, inventories.min_unit, inventories.max_unit, inventories.step_size, inventories.allocation_ratio
FROM inventories
WHERE inventories.resource_provider_id IN (__[POSTCOMPILE_providers])

-- store.inventories._UPDATE
UPDATE inventories SET updated_at=%(now)s::TIMESTAMP WITHOUT TIME ZONE, total=%(new_total)s::INTEGER, reserved=%(new_reserved)s::INTEGER, min_unit=%(new_min_unit)s::INTEGER, max_unit=%(new_max_unit)s::INTEGER, step_size=%(new_step_size)s::INTEGER, allocation_ratio=%(new_allocation_ratio)s WHERE inventories.resource_provider_id = %(provider)s::INTEGER AND inventories.resource_class_id = %(resource_class)s::INTEGER

-- store.lease_sweep._DUE
SELECT berth_leases.consumer_uuid, berth_leases.expires_at, berth_leases.renewals, berth_leases.id
FROM berth_leases
WHERE berth_leases.expires_at <= %(now)s::TIMESTAMP WITHOUT TIME ZONE AND berth_leases.expires_at >= %(after)s::TIMESTAMP WITHOUT TIME ZONE AND (berth_leases.expires_at > %(after)s::TIMESTAMP WITHOUT TIME ZONE OR berth_leases.id > %(after_id)s::INTEGER) ORDER BY berth_leases.expires_at, berth_leases.id
 LIMIT %(count)s

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
FROM berth_leases JOIN consumers ON berth_leases.consumer_uuid = consumers.uuid AND berth_leases.consumer_id = consumers.id AND berth_leases.consumer_created_at IS NOT DISTINCT FROM consumers.created_at AND berth_leases.consumer_generation = consumers.generation

-- store.leases._DELETE
DELETE FROM berth_leases WHERE berth_leases.consumer_uuid IN (__[POSTCOMPILE_consumers])

-- store.leases._DELETE_AS_SEEN
DELETE FROM berth_leases WHERE berth_leases.consumer_uuid = %(consumer)s::VARCHAR AND berth_leases.expires_at = %(seen_expires_at)s::TIMESTAMP WITHOUT TIME ZONE AND berth_leases.renewals = %(seen_renewals)s::INTEGER

-- store.leases._HOLDER
SELECT consumers.id, consumers.generation, CASE WHEN (berth_leases.consumer_uuid = consumers.uuid AND berth_leases.consumer_id = consumers.id AND berth_leases.consumer_created_at IS NOT DISTINCT FROM consumers.created_at AND berth_leases.consumer_generation = consumers.generation) THEN 1 ELSE 0 END AS anon_1, berth_leases.consumer_uuid, berth_leases.expires_at, berth_leases.renewals
FROM consumers LEFT OUTER JOIN berth_leases ON berth_leases.consumer_uuid = consumers.uuid
WHERE consumers.uuid = %(consumer)s::VARCHAR AND (EXISTS (SELECT allocations.id
FROM allocations
WHERE allocations.consumer_id = consumers.uuid))

-- store.leases._INSERT
INSERT INTO berth_leases (consumer_uuid, consumer_id, consumer_created_at, consumer_generation, expires_at, renewals) SELECT consumers.uuid, consumers.id, consumers.created_at, consumers.generation, %(new_expires_at)s::TIMESTAMP WITHOUT TIME ZONE AS anon_1, 0
FROM consumers
WHERE consumers.uuid = %(consumer)s::VARCHAR

-- store.leases._INSERT_AS_SEEN
INSERT INTO berth_leases (consumer_uuid, consumer_id, consumer_created_at, consumer_generation, expires_at, renewals) SELECT consumers.uuid, consumers.id, consumers.created_at, consumers.generation, %(new_expires_at)s::TIMESTAMP WITHOUT TIME ZONE AS anon_1, 0
FROM consumers
WHERE consumers.id = %(of_consumer)s::INTEGER AND consumers.generation = %(generation)s::INTEGER

-- store.leases._LISTED
SELECT berth_leases.consumer_uuid, berth_consumer_names.name, projects.external_id, users.external_id AS external_id_1, berth_leases.expires_at
FROM berth_leases JOIN consumers ON berth_leases.consumer_uuid = consumers.uuid AND berth_leases.consumer_id = consumers.id AND berth_leases.consumer_created_at IS NOT DISTINCT FROM consumers.created_at AND berth_leases.consumer_generation = consumers.generation JOIN projects ON projects.id = consumers.project_id JOIN users ON users.id = consumers.user_id LEFT OUTER JOIN berth_consumer_names ON berth_consumer_names.consumer_uuid = consumers.uuid

-- store.leases._NEW
SELECT consumers.uuid, consumers.id, consumers.created_at, consumers.generation, %(new_expires_at)s::TIMESTAMP WITHOUT TIME ZONE AS anon_1, 0
FROM consumers

-- store.leases._NEXT
SELECT berth_leases.consumer_uuid, berth_consumer_names.name, projects.external_id, users.external_id AS external_id_1, berth_leases.expires_at
FROM berth_leases JOIN consumers ON berth_leases.consumer_uuid = consumers.uuid AND berth_leases.consumer_id = consumers.id AND berth_leases.consumer_created_at IS NOT DISTINCT FROM consumers.created_at AND berth_leases.consumer_generation = consumers.generation JOIN projects ON projects.id = consumers.project_id JOIN users ON users.id = consumers.user_id LEFT OUTER JOIN berth_consumer_names ON berth_consumer_names.consumer_uuid = consumers.uuid
WHERE berth_leases.consumer_uuid > %(after)s::VARCHAR ORDER BY berth_leases.consumer_uuid
 LIMIT %(count)s

-- store.leases._NEXT_OF_PROJECT
SELECT berth_leases.consumer_uuid, berth_consumer_names.name, projects.external_id, users.external_id AS external_id_1, berth_leases.expires_at
FROM berth_leases JOIN consumers ON berth_leases.consumer_uuid = consumers.uuid AND berth_leases.consumer_id = consumers.id AND berth_leases.consumer_created_at IS NOT DISTINCT FROM consumers.created_at AND berth_leases.consumer_generation = consumers.generation JOIN projects ON projects.id = consumers.project_id JOIN users ON users.id = consumers.user_id LEFT OUTER JOIN berth_consumer_names ON berth_consumer_names.consumer_uuid = consumers.uuid
WHERE berth_leases.consumer_uuid > %(after)s::VARCHAR AND projects.external_id = %(project)s::VARCHAR ORDER BY berth_leases.consumer_uuid
 LIMIT %(count)s

-- store.leases._ONE
SELECT berth_leases.consumer_uuid, berth_consumer_names.name, projects.external_id, users.external_id AS external_id_1, berth_leases.expires_at
FROM berth_leases JOIN consumers ON berth_leases.consumer_uuid = consumers.uuid AND berth_leases.consumer_id = consumers.id AND berth_leases.consumer_created_at IS NOT DISTINCT FROM consumers.created_at AND berth_leases.consumer_generation = consumers.generation JOIN projects ON projects.id = consumers.project_id JOIN users ON users.id = consumers.user_id LEFT OUTER JOIN berth_consumer_names ON berth_consumer_names.consumer_uuid = consumers.uuid
WHERE berth_leases.consumer_uuid = %(consumer)s::VARCHAR

-- store.leases._RENEW
UPDATE berth_leases SET consumer_id=%(of_consumer)s::INTEGER, consumer_created_at=(SELECT consumers.created_at
FROM consumers
WHERE consumers.uuid = berth_leases.consumer_uuid), consumer_generation=%(generation)s::INTEGER, expires_at=%(new_expires_at)s::TIMESTAMP WITHOUT TIME ZONE, renewals=(berth_leases.renewals + %(renewals_1)s::INTEGER) WHERE berth_leases.consumer_uuid = %(consumer)s::VARCHAR AND berth_leases.expires_at = %(seen_expires_at)s::TIMESTAMP WITHOUT TIME ZONE AND berth_leases.renewals = %(seen_renewals)s::INTEGER

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
WHERE resource_providers.uuid = %(uuid)s::VARCHAR

-- store.lookups._TRAITS_BY_NAME
SELECT traits.name, traits.id
FROM traits
WHERE traits.name IN (__[POSTCOMPILE_names])

-- store.named._ADD
INSERT INTO berth_drained (drain_id, provider_id, provider_uuid) VALUES (%(drain_id)s::INTEGER, %(provider_id)s::INTEGER, %(provider_uuid)s::VARCHAR)

-- store.named._DRAINS[0]
SELECT berth_drains.name, berth_drains.id, berth_drains.generation, berth_drains.effect, berth_drains.reason, berth_drains.created_at, berth_drains.created_by
FROM berth_drains

-- store.named._DRAINS[1]
SELECT berth_drains.name, berth_drains.id, berth_drains.generation, berth_drains.effect, berth_drains.reason, berth_drains.created_at, berth_drains.created_by
FROM berth_drains
WHERE berth_drains.name = %(record)s::VARCHAR

-- store.named._DRAINS[2]
SELECT berth_drains.id
FROM berth_drains

-- store.named._DRAINS[3]
INSERT INTO berth_drains (id, name, generation, effect, reason, created_at, created_by) VALUES (%(id)s::INTEGER, %(name)s::VARCHAR, %(generation)s::INTEGER, %(effect)s::VARCHAR, %(reason)s::VARCHAR, %(created_at)s::TIMESTAMP WITHOUT TIME ZONE, %(created_by)s::VARCHAR)

-- store.named._DRAINS[4]
UPDATE berth_drains SET generation=(berth_drains.generation + %(generation_1)s::INTEGER), effect=%(new_effect)s::VARCHAR, reason=%(new_reason)s::VARCHAR WHERE berth_drains.id = %(number)s::INTEGER AND berth_drains.generation = %(seen)s::INTEGER

-- store.named._DRAINS[5]
DELETE FROM berth_drains WHERE berth_drains.id = %(number)s::INTEGER AND berth_drains.generation = %(seen)s::INTEGER

-- store.named._FLAVORS[0]
SELECT berth_flavors.name, berth_flavors.request, berth_flavors.expose, berth_flavors.description
FROM berth_flavors

-- store.named._FLAVORS[1]
SELECT berth_flavors.name, berth_flavors.request, berth_flavors.expose, berth_flavors.description
FROM berth_flavors
WHERE berth_flavors.name = %(record)s::VARCHAR

-- store.named._FLAVORS[2]
SELECT berth_flavors.id
FROM berth_flavors

-- store.named._FLAVORS[3]
INSERT INTO berth_flavors (id, name, request, expose, description) VALUES (%(id)s::INTEGER, %(name)s::VARCHAR, %(request)s::VARCHAR, %(expose)s, %(description)s::VARCHAR)

-- store.named._FLAVORS[4]
UPDATE berth_flavors SET request=%(new_request)s::VARCHAR, expose=%(new_expose)s, description=%(new_description)s::VARCHAR WHERE berth_flavors.name = %(record)s::VARCHAR

-- store.named._FLAVORS[5]
DELETE FROM berth_flavors WHERE berth_flavors.name = %(record)s::VARCHAR

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
WHERE berth_labels.aggregate_uuid = %(record)s::VARCHAR

-- store.named._LABELS[2]
SELECT berth_labels.id
FROM berth_labels

-- store.named._LABELS[3]
INSERT INTO berth_labels (aggregate_uuid, name, labels) VALUES (%(aggregate_uuid)s::VARCHAR, %(name)s::VARCHAR, %(labels)s::VARCHAR)

-- store.named._LABELS[4]
UPDATE berth_labels SET name=%(new_name)s::VARCHAR, labels=%(new_labels)s::VARCHAR WHERE berth_labels.aggregate_uuid = %(record)s::VARCHAR

-- store.named._LABELS[5]
DELETE FROM berth_labels WHERE berth_labels.aggregate_uuid = %(record)s::VARCHAR

-- store.named._OF_AGGREGATE_OR_NAME
SELECT berth_labels.aggregate_uuid, berth_labels.name, berth_labels.labels
FROM berth_labels
WHERE berth_labels.aggregate_uuid = %(aggregate)s::VARCHAR OR berth_labels.name = %(name)s::VARCHAR

-- store.named._PROVIDERS
SELECT berth_drained.provider_id, berth_drained.provider_uuid
FROM berth_drained
WHERE berth_drained.drain_id = %(drain)s::INTEGER

-- store.named._REMOVE
DELETE FROM berth_drained WHERE berth_drained.drain_id = %(drain)s::INTEGER AND berth_drained.provider_id IN (__[POSTCOMPILE_providers])

-- store.named._REMOVE_ALL
DELETE FROM berth_drained WHERE berth_drained.drain_id = %(drain)s::INTEGER

-- store.placements._HOLDING
SELECT consumers.uuid, consumers.generation, berth_leases.expires_at, resource_providers.id, resource_providers.uuid AS uuid_1, resource_classes.id AS id_1, resource_classes.name, allocations.used
FROM consumers LEFT OUTER JOIN berth_leases ON berth_leases.consumer_uuid = consumers.uuid AND berth_leases.consumer_id = consumers.id AND berth_leases.consumer_created_at IS NOT DISTINCT FROM consumers.created_at AND berth_leases.consumer_generation = consumers.generation LEFT OUTER JOIN allocations ON allocations.consumer_id = consumers.uuid LEFT OUTER JOIN resource_providers ON resource_providers.id = allocations.resource_provider_id LEFT OUTER JOIN resource_classes ON resource_classes.id = allocations.resource_class_id
WHERE consumers.uuid IN (__[POSTCOMPILE_consumers]) ORDER BY allocations.id

-- store.placements._PLACEMENTS
SELECT berth_placements.consumer_uuid, berth_placements.digest, berth_placements.allocations_digest, berth_placements.host_uuid, berth_placements.mappings, berth_placements.request
FROM berth_placements
WHERE berth_placements.consumer_uuid IN (__[POSTCOMPILE_consumers])

-- store.provider_trees.RENAME
UPDATE resource_providers SET updated_at=%(now)s::TIMESTAMP WITHOUT TIME ZONE, name=%(new)s::VARCHAR WHERE resource_providers.id = %(provider)s::INTEGER

-- store.provider_trees._BY_NAME
SELECT resource_providers.uuid, resource_providers.name
FROM resource_providers
WHERE resource_providers.name IN (__[POSTCOMPILE_names])

-- store.provider_trees._INSERT
INSERT INTO resource_providers (created_at, uuid, name, generation) VALUES (%(created_at)s::TIMESTAMP WITHOUT TIME ZONE, %(uuid)s::VARCHAR, %(name)s::VARCHAR, %(generation)s::INTEGER)

-- store.provider_trees._IN_USE
SELECT DISTINCT allocations.resource_provider_id, resource_classes.name
FROM allocations JOIN resource_classes ON resource_classes.id = allocations.resource_class_id
WHERE allocations.resource_provider_id IN (__[POSTCOMPILE_providers])

-- store.provider_trees._PLACE
UPDATE resource_providers SET root_provider_id=%(new_root)s::INTEGER, parent_provider_id=%(new_parent)s::INTEGER WHERE resource_providers.id = %(provider)s::INTEGER

-- store.providers.RENAME
UPDATE resource_providers SET updated_at=%(now)s::TIMESTAMP WITHOUT TIME ZONE, name=%(new)s::VARCHAR WHERE resource_providers.id = %(provider)s::INTEGER

-- store.providers._AN_ALLOCATION
SELECT allocations.id
FROM allocations
WHERE allocations.resource_provider_id = %(provider)s::INTEGER
 LIMIT %(param_1)s::INTEGER

-- store.providers._A_CHILD
SELECT resource_providers.id
FROM resource_providers
WHERE resource_providers.parent_provider_id = %(provider)s::INTEGER
 LIMIT %(param_1)s::INTEGER

-- store.providers._DELETE
DELETE FROM resource_providers WHERE resource_providers.id = %(provider)s::INTEGER

-- store.providers._DELETE_PARTS[0]
DELETE FROM resource_provider_traits WHERE resource_provider_traits.resource_provider_id = %(provider)s::INTEGER

-- store.providers._DELETE_PARTS[1]
DELETE FROM resource_provider_aggregates WHERE resource_provider_aggregates.resource_provider_id = %(provider)s::INTEGER

-- store.providers._DELETE_PARTS[2]
DELETE FROM berth_usages WHERE berth_usages.resource_provider_id = %(provider)s::INTEGER

-- store.providers._DELETE_PARTS[3]
DELETE FROM inventories WHERE inventories.resource_provider_id = %(provider)s::INTEGER

-- store.providers._DELETE_PARTS[4]
DELETE FROM berth_drained WHERE berth_drained.provider_id = %(provider)s::INTEGER

-- store.providers._INSERT_CHILD
INSERT INTO resource_providers (created_at, uuid, name, generation, root_provider_id, parent_provider_id) VALUES (%(now)s::TIMESTAMP WITHOUT TIME ZONE, %(uuid)s::VARCHAR, %(name)s::VARCHAR, %(generation)s::INTEGER, (SELECT root.id
FROM resource_providers AS root
WHERE root.uuid = %(root_uuid)s::VARCHAR), %(parent)s::INTEGER) RETURNING resource_providers.id

-- store.providers._INSERT_ROOT
INSERT INTO resource_providers (created_at, uuid, name, generation) VALUES (%(now)s::TIMESTAMP WITHOUT TIME ZONE, %(uuid)s::VARCHAR, %(name)s::VARCHAR, %(generation)s::INTEGER) RETURNING resource_providers.id

-- store.providers._OTHERS_OF_NAME
SELECT resource_providers.id
FROM resource_providers
WHERE resource_providers.name = %(new)s::VARCHAR AND resource_providers.id != %(provider)s::INTEGER

-- store.providers._OWN_ROOT
UPDATE resource_providers SET root_provider_id=resource_providers.id WHERE resource_providers.id = %(provider)s::INTEGER

-- store.providers._PIN_PLACE
UPDATE resource_providers SET updated_at=resource_providers.updated_at, root_provider_id=resource_providers.root_provider_id WHERE resource_providers.id = %(provider)s::INTEGER AND resource_providers.root_provider_id = (SELECT root.id
FROM resource_providers AS root
WHERE root.uuid = %(root_uuid)s::VARCHAR)

-- store.providers._PLACE
UPDATE resource_providers SET parent_provider_id=%(new_parent)s::INTEGER WHERE resource_providers.id = %(provider)s::INTEGER AND resource_providers.parent_provider_id IS NOT DISTINCT FROM %(old_parent)s::INTEGER

-- store.providers._PROVIDER_BY_UUID
SELECT resource_providers.id, resource_providers.uuid, resource_providers.name, resource_providers.generation, parent.uuid AS uuid_1, coalesce(root.uuid, resource_providers.uuid) AS coalesce_1, resource_providers.created_at, resource_providers.updated_at
FROM resource_providers LEFT OUTER JOIN resource_providers AS parent ON parent.id = resource_providers.parent_provider_id LEFT OUTER JOIN resource_providers AS root ON root.id = resource_providers.root_provider_id
WHERE resource_providers.uuid = %(uuid)s::VARCHAR

-- store.providers._REROOT
UPDATE resource_providers SET updated_at=%(now)s::TIMESTAMP WITHOUT TIME ZONE, root_provider_id=%(new_root)s::INTEGER WHERE resource_providers.id IN (__[POSTCOMPILE_providers]) AND resource_providers.root_provider_id = %(old_root)s::INTEGER

-- store.providers._ROOT_OF
SELECT resource_providers.root_provider_id
FROM resource_providers
WHERE resource_providers.id = %(provider)s::INTEGER

-- store.providers._TAKEN
SELECT resource_providers.uuid
FROM resource_providers
WHERE resource_providers.uuid = %(uuid)s::VARCHAR OR resource_providers.name = %(name)s::VARCHAR

-- store.providers._TREE
SELECT resource_providers.id, resource_providers.parent_provider_id
FROM resource_providers
WHERE resource_providers.root_provider_id = %(root)s::INTEGER

-- store.providers._UNROOT
UPDATE resource_providers SET root_provider_id=%(root_provider_id)s::INTEGER WHERE resource_providers.id = %(provider)s::INTEGER AND resource_providers.generation = %(seen)s::INTEGER

-- store.resource_classes._ALL
SELECT resource_classes.name, coalesce(resource_classes.updated_at, resource_classes.created_at) AS coalesce_1
FROM resource_classes ORDER BY resource_classes.id

-- store.resource_classes._DELETE_UNUSED
DELETE FROM resource_classes WHERE resource_classes.id = %(number)s::INTEGER AND resource_classes.name = %(name)s::VARCHAR AND NOT (EXISTS (SELECT *
FROM inventories
WHERE inventories.resource_class_id = %(number)s::INTEGER))

-- store.resource_classes._INSERT
INSERT INTO resource_classes (id, name, created_at) SELECT CASE WHEN (max(resource_classes.id) >= %(max_1)s::INTEGER) THEN max(resource_classes.id) + %(max_2)s::INTEGER ELSE %(param_1)s::INTEGER END AS anon_1, %(name)s::VARCHAR AS anon_2, %(now)s::TIMESTAMP WITHOUT TIME ZONE AS anon_3
FROM resource_classes

-- store.resource_classes._IS_USED
SELECT inventories.id
FROM inventories
WHERE inventories.resource_class_id = %(number)s::INTEGER
 LIMIT %(param_1)s::INTEGER

-- store.resource_classes._OF_NAME
SELECT resource_classes.name, coalesce(resource_classes.updated_at, resource_classes.created_at) AS coalesce_1
FROM resource_classes
WHERE resource_classes.name = %(name)s::VARCHAR

-- store.resource_classes._RENAME
UPDATE resource_classes SET updated_at=%(now)s::TIMESTAMP WITHOUT TIME ZONE, name=%(new)s::VARCHAR WHERE resource_classes.id = %(number)s::INTEGER AND resource_classes.name = %(old)s::VARCHAR

-- store.resource_classes._WITH_CLASS
SELECT inventories.resource_provider_id
FROM inventories
WHERE inventories.resource_class_id = %(number)s::INTEGER

-- store.traits._DELETE_UNUSED
DELETE FROM traits WHERE traits.id = %(number)s::INTEGER AND NOT (EXISTS (SELECT *
FROM resource_provider_traits
WHERE resource_provider_traits.trait_id = %(number)s::INTEGER))

-- store.traits._GIVE
INSERT INTO resource_provider_traits (created_at, trait_id, resource_provider_id) VALUES (%(created_at)s::TIMESTAMP WITHOUT TIME ZONE, %(trait_id)s::INTEGER, %(resource_provider_id)s::INTEGER)

-- store.traits._IDS_OF_PROVIDER
SELECT resource_provider_traits.trait_id
FROM resource_provider_traits
WHERE resource_provider_traits.resource_provider_id = %(provider)s::INTEGER

-- store.traits._IS_USED
SELECT resource_provider_traits.trait_id
FROM resource_provider_traits
WHERE resource_provider_traits.trait_id = %(number)s::INTEGER
 LIMIT %(param_1)s::INTEGER

-- store.traits._RECORD
SELECT traits.name, traits.created_at, traits.updated_at
FROM traits
WHERE traits.name = %(name)s::VARCHAR

-- store.traits._TAKE
DELETE FROM resource_provider_traits WHERE resource_provider_traits.resource_provider_id = %(provider)s::INTEGER AND resource_provider_traits.trait_id IN (__[POSTCOMPILE_traits])

-- store.traits._TRAITS_OF_PROVIDER
SELECT traits.name, coalesce(traits.updated_at, traits.created_at) AS coalesce_1
FROM traits JOIN resource_provider_traits ON resource_provider_traits.trait_id = traits.id
WHERE resource_provider_traits.resource_provider_id = %(provider)s::INTEGER ORDER BY traits.id

-- store.tree_rows._AGGREGATES
SELECT resource_provider_aggregates.resource_provider_id, placement_aggregates.uuid
FROM resource_provider_aggregates JOIN resource_providers ON resource_providers.id = resource_provider_aggregates.resource_provider_id JOIN placement_aggregates ON placement_aggregates.id = resource_provider_aggregates.aggregate_id
WHERE resource_providers.root_provider_id = %(root)s::INTEGER

-- store.tree_rows._IDS
SELECT resource_providers.id
FROM resource_providers
WHERE resource_providers.root_provider_id = %(root)s::INTEGER

-- store.tree_rows._INVENTORIES
SELECT inventories.resource_provider_id, resource_classes.name, inventories.total, inventories.reserved, inventories.min_unit, inventories.max_unit, inventories.step_size, inventories.allocation_ratio
FROM inventories JOIN resource_providers ON resource_providers.id = inventories.resource_provider_id JOIN resource_classes ON resource_classes.id = inventories.resource_class_id
WHERE resource_providers.root_provider_id = %(root)s::INTEGER

-- store.tree_rows._LOCK
UPDATE resource_providers SET updated_at=resource_providers.updated_at, generation=resource_providers.generation WHERE resource_providers.id IN (__[POSTCOMPILE_providers]) AND resource_providers.root_provider_id = %(root)s::INTEGER

-- store.tree_rows._PROVIDERS
SELECT resource_providers.id, resource_providers.uuid, resource_providers.generation, resource_providers.name, resource_providers.parent_provider_id
FROM resource_providers
WHERE resource_providers.root_provider_id = %(root)s::INTEGER ORDER BY resource_providers.id

-- store.tree_rows._ROOTS
SELECT resource_providers.uuid, resource_providers.name, resource_providers.root_provider_id
FROM resource_providers
WHERE resource_providers.uuid = %(uuid)s::VARCHAR OR resource_providers.name = %(name)s::VARCHAR

-- store.tree_rows._TRAITS
SELECT resource_provider_traits.resource_provider_id, traits.name
FROM resource_provider_traits JOIN resource_providers ON resource_providers.id = resource_provider_traits.resource_provider_id JOIN traits ON traits.id = resource_provider_traits.trait_id
WHERE resource_providers.root_provider_id = %(root)s::INTEGER

-- store.usage_counts._CORRECT
UPDATE berth_usages SET used=%(counted)s::BIGINT WHERE berth_usages.resource_provider_id = %(provider)s::INTEGER AND berth_usages.resource_class_id = %(class)s::INTEGER AND berth_usages.used = %(remembered)s::BIGINT

-- store.usage_counts._COUNT
SELECT count(*) AS count_1
FROM inventories

-- store.usage_counts._FORGET
DELETE FROM berth_usages WHERE berth_usages.resource_provider_id = %(provider)s::INTEGER AND berth_usages.resource_class_id = %(class)s::INTEGER AND berth_usages.used = %(remembered)s::BIGINT

-- store.usage_counts._HOLD
UPDATE resource_providers SET updated_at=resource_providers.updated_at, generation=resource_providers.generation WHERE resource_providers.id = %(provider)s::INTEGER

-- store.usage_counts._LAST_OF_PART
SELECT inventories.resource_provider_id
FROM inventories
WHERE inventories.resource_provider_id > %(after)s::INTEGER ORDER BY inventories.resource_provider_id
 LIMIT %(param_1)s::INTEGER OFFSET %(param_2)s::INTEGER

-- store.usage_counts._LEVEL
UPDATE berth_usages SET generation=(SELECT resource_providers.generation
FROM resource_providers
WHERE resource_providers.id = berth_usages.resource_provider_id) WHERE berth_usages.resource_provider_id = %(provider)s::INTEGER

-- store.usage_counts._MISSING_OF_PART
INSERT INTO berth_usages (resource_provider_id, resource_class_id, used, generation) SELECT inventories.resource_provider_id, inventories.resource_class_id, CAST(coalesce(counted.used, %(coalesce_1)s::INTEGER) AS BIGINT) AS counted, (SELECT resource_providers.generation
FROM resource_providers
WHERE resource_providers.id = inventories.resource_provider_id) AS anon_1
FROM inventories LEFT OUTER JOIN (SELECT allocations.resource_provider_id AS resource_provider_id, allocations.resource_class_id AS resource_class_id, sum(allocations.used) AS used
FROM allocations
WHERE allocations.resource_provider_id > %(after)s::INTEGER AND allocations.resource_provider_id <= %(upto)s::INTEGER GROUP BY allocations.resource_provider_id, allocations.resource_class_id) AS counted ON counted.resource_provider_id = inventories.resource_provider_id AND counted.resource_class_id = inventories.resource_class_id LEFT OUTER JOIN berth_usages ON berth_usages.resource_provider_id = inventories.resource_provider_id AND berth_usages.resource_class_id = inventories.resource_class_id
WHERE inventories.resource_provider_id > %(after)s::INTEGER AND inventories.resource_provider_id <= %(upto)s::INTEGER AND berth_usages.used IS NULL

-- store.usage_counts._MOVED_OF_PART
SELECT resource_providers.id, resource_providers.generation, max(berth_usages.generation) AS known
FROM resource_providers JOIN berth_usages ON berth_usages.resource_provider_id = resource_providers.id
WHERE resource_providers.id > %(after)s::INTEGER AND resource_providers.id <= %(upto)s::INTEGER GROUP BY resource_providers.id, resource_providers.generation
HAVING coalesce(max(berth_usages.generation), %(coalesce_1)s::INTEGER) != coalesce(resource_providers.generation, %(coalesce_2)s::INTEGER)

-- store.usage_counts._OF_PART[0]
SELECT inventories.resource_provider_id, inventories.resource_class_id, berth_usages.used, CAST(coalesce(counted.used, %(coalesce_1)s::INTEGER) AS BIGINT) AS counted
FROM inventories LEFT OUTER JOIN (SELECT allocations.resource_provider_id AS resource_provider_id, allocations.resource_class_id AS resource_class_id, sum(allocations.used) AS used
FROM allocations
WHERE allocations.resource_provider_id > %(after)s::INTEGER AND allocations.resource_provider_id <= %(upto)s::INTEGER GROUP BY allocations.resource_provider_id, allocations.resource_class_id) AS counted ON counted.resource_provider_id = inventories.resource_provider_id AND counted.resource_class_id = inventories.resource_class_id LEFT OUTER JOIN berth_usages ON berth_usages.resource_provider_id = inventories.resource_provider_id AND berth_usages.resource_class_id = inventories.resource_class_id
WHERE (berth_usages.used IS NULL OR berth_usages.used != CAST(coalesce(counted.used, %(coalesce_1)s::INTEGER) AS BIGINT)) AND inventories.resource_provider_id > %(after)s::INTEGER AND inventories.resource_provider_id <= %(upto)s::INTEGER

-- store.usage_counts._OF_PART[1]
SELECT berth_usages.resource_provider_id, berth_usages.resource_class_id, berth_usages.used
FROM berth_usages
WHERE NOT (EXISTS (SELECT *
FROM inventories
WHERE inventories.resource_provider_id = berth_usages.resource_provider_id AND inventories.resource_class_id = berth_usages.resource_class_id)) AND berth_usages.resource_provider_id > %(after)s::INTEGER AND berth_usages.resource_provider_id <= %(upto)s::INTEGER

-- store.usage_counts._OF_SOME[0]
SELECT inventories.resource_provider_id, inventories.resource_class_id, berth_usages.used, CAST(coalesce(counted.used, %(coalesce_1)s::INTEGER) AS BIGINT) AS counted
FROM inventories LEFT OUTER JOIN (SELECT allocations.resource_provider_id AS resource_provider_id, allocations.resource_class_id AS resource_class_id, sum(allocations.used) AS used
FROM allocations
WHERE allocations.resource_provider_id IN (__[POSTCOMPILE_providers]) GROUP BY allocations.resource_provider_id, allocations.resource_class_id) AS counted ON counted.resource_provider_id = inventories.resource_provider_id AND counted.resource_class_id = inventories.resource_class_id LEFT OUTER JOIN berth_usages ON berth_usages.resource_provider_id = inventories.resource_provider_id AND berth_usages.resource_class_id = inventories.resource_class_id
WHERE (berth_usages.used IS NULL OR berth_usages.used != CAST(coalesce(counted.used, %(coalesce_1)s::INTEGER) AS BIGINT)) AND inventories.resource_provider_id IN (__[POSTCOMPILE_providers])

-- store.usage_counts._OF_SOME[1]
SELECT berth_usages.resource_provider_id, berth_usages.resource_class_id, berth_usages.used
FROM berth_usages
WHERE NOT (EXISTS (SELECT *
FROM inventories
WHERE inventories.resource_provider_id = berth_usages.resource_provider_id AND inventories.resource_class_id = berth_usages.resource_class_id)) AND berth_usages.resource_provider_id IN (__[POSTCOMPILE_providers])

-- store.usages._ANY
SELECT berth_project_usages.writer_id
FROM berth_project_usages
 LIMIT %(param_1)s::INTEGER

-- store.usages._CORRECT[0]
UPDATE berth_project_usages SET used_0=%(to_be)s::BIGINT WHERE berth_project_usages.project_id = %(project_id)s::INTEGER AND berth_project_usages.user_id = %(user_id)s::INTEGER AND berth_project_usages.consumer_type_id = %(consumer_type_id)s::INTEGER AND berth_project_usages.first_class = %(first_class)s::INTEGER AND berth_project_usages.writer_id = %(writer_id)s::INTEGER AND berth_project_usages.used_0 = %(corrected)s::BIGINT

-- store.usages._CORRECT[1]
UPDATE berth_project_usages SET used_1=%(to_be)s::BIGINT WHERE berth_project_usages.project_id = %(project_id)s::INTEGER AND berth_project_usages.user_id = %(user_id)s::INTEGER AND berth_project_usages.consumer_type_id = %(consumer_type_id)s::INTEGER AND berth_project_usages.first_class = %(first_class)s::INTEGER AND berth_project_usages.writer_id = %(writer_id)s::INTEGER AND berth_project_usages.used_1 = %(corrected)s::BIGINT

-- store.usages._CORRECT[2]
UPDATE berth_project_usages SET used_2=%(to_be)s::BIGINT WHERE berth_project_usages.project_id = %(project_id)s::INTEGER AND berth_project_usages.user_id = %(user_id)s::INTEGER AND berth_project_usages.consumer_type_id = %(consumer_type_id)s::INTEGER AND berth_project_usages.first_class = %(first_class)s::INTEGER AND berth_project_usages.writer_id = %(writer_id)s::INTEGER AND berth_project_usages.used_2 = %(corrected)s::BIGINT

-- store.usages._CORRECT[3]
UPDATE berth_project_usages SET used_3=%(to_be)s::BIGINT WHERE berth_project_usages.project_id = %(project_id)s::INTEGER AND berth_project_usages.user_id = %(user_id)s::INTEGER AND berth_project_usages.consumer_type_id = %(consumer_type_id)s::INTEGER AND berth_project_usages.first_class = %(first_class)s::INTEGER AND berth_project_usages.writer_id = %(writer_id)s::INTEGER AND berth_project_usages.used_3 = %(corrected)s::BIGINT

-- store.usages._COUNT_OF
SELECT consumers.project_id, consumers.user_id, coalesce(consumers.consumer_type_id, 0) AS coalesce_1, -1, count(*) AS count_1
FROM consumers
WHERE (EXISTS (SELECT *
FROM allocations
WHERE allocations.consumer_id = consumers.uuid)) AND consumers.uuid IN (__[POSTCOMPILE_consumers]) GROUP BY consumers.project_id, consumers.user_id, coalesce(consumers.consumer_type_id, 0)

-- store.usages._FILL
INSERT INTO berth_project_usages (project_id, user_id, consumer_type_id, first_class, writer_id, used_0, used_1, used_2, used_3) SELECT placed.project_id, placed.user_id, placed.consumer_type_id, placed.first_class, 0, sum(CASE WHEN (placed.place = 0) THEN placed.counted ELSE 0 END) AS sum_1, sum(CASE WHEN (placed.place = 1) THEN placed.counted ELSE 0 END) AS sum_2, sum(CASE WHEN (placed.place = 2) THEN placed.counted ELSE 0 END) AS sum_3, sum(CASE WHEN (placed.place = 3) THEN placed.counted ELSE 0 END) AS sum_4
FROM (SELECT counted.project_id AS project_id, counted.user_id AS user_id, counted.coalesce_1 AS consumer_type_id, counted.resource_class_id - (counted.resource_class_id - %(resource_class_id_1)s::INTEGER) %% 4 AS first_class, (counted.resource_class_id - %(resource_class_id_1)s::INTEGER) %% 4 AS place, counted.sum_5 AS counted
FROM (SELECT consumers.project_id AS project_id, consumers.user_id AS user_id, coalesce(consumers.consumer_type_id, 0) AS coalesce_1, allocations.resource_class_id AS resource_class_id, sum(allocations.used) AS sum_5
FROM allocations JOIN consumers ON consumers.uuid = allocations.consumer_id GROUP BY consumers.project_id, consumers.user_id, coalesce(consumers.consumer_type_id, 0), allocations.resource_class_id UNION ALL SELECT consumers.project_id AS project_id, consumers.user_id AS user_id, coalesce(consumers.consumer_type_id, 0) AS coalesce_1, -1, count(*) AS count_1
FROM consumers
WHERE EXISTS (SELECT *
FROM allocations
WHERE allocations.consumer_id = consumers.uuid) GROUP BY consumers.project_id, consumers.user_id, coalesce(consumers.consumer_type_id, 0)) AS counted) AS placed GROUP BY placed.project_id, placed.user_id, placed.consumer_type_id, placed.first_class

-- store.usages._MARKED
SELECT CAST(sum(berth_project_usages.used_0) AS BIGINT) AS sum_1
FROM berth_project_usages
WHERE berth_project_usages.project_id = %(project_id_1)s::INTEGER
HAVING sum(berth_project_usages.used_0) != 0

-- store.usages._OF_PROJECT
SELECT consumer_types.name, sums.first_class, resource_classes.id, resource_classes.name AS class_name, sums.used_0, sums.used_1, sums.used_2, sums.used_3
FROM (SELECT berth_project_usages.consumer_type_id AS consumer_type_id, berth_project_usages.first_class AS first_class, sum(berth_project_usages.used_0) AS used_0, sum(berth_project_usages.used_1) AS used_1, sum(berth_project_usages.used_2) AS used_2, sum(berth_project_usages.used_3) AS used_3
FROM berth_project_usages JOIN projects ON projects.id = berth_project_usages.project_id
WHERE projects.external_id = %(project)s::VARCHAR GROUP BY berth_project_usages.consumer_type_id, berth_project_usages.first_class) AS sums JOIN resource_classes ON resource_classes.id BETWEEN sums.first_class AND sums.first_class + 3 LEFT OUTER JOIN consumer_types ON consumer_types.id = sums.consumer_type_id UNION ALL SELECT NULL AS anon_1, -2, -2, NULL AS anon__1, sum(berth_project_usages.used_0) AS sum_1, sum(berth_project_usages.used_1) AS sum_2, sum(berth_project_usages.used_2) AS sum_3, sum(berth_project_usages.used_3) AS sum_4
FROM berth_project_usages
WHERE berth_project_usages.project_id = %(project_id_1)s::INTEGER
HAVING sum(berth_project_usages.used_0) != 0

-- store.usages._OF_USER
SELECT consumer_types.name, sums.first_class, resource_classes.id, resource_classes.name AS class_name, sums.used_0, sums.used_1, sums.used_2, sums.used_3
FROM (SELECT berth_project_usages.consumer_type_id AS consumer_type_id, berth_project_usages.first_class AS first_class, sum(berth_project_usages.used_0) AS used_0, sum(berth_project_usages.used_1) AS used_1, sum(berth_project_usages.used_2) AS used_2, sum(berth_project_usages.used_3) AS used_3
FROM berth_project_usages JOIN projects ON projects.id = berth_project_usages.project_id
WHERE projects.external_id = %(project)s::VARCHAR AND berth_project_usages.user_id IN (SELECT users.id
FROM users
WHERE users.external_id = %(user)s::VARCHAR) GROUP BY berth_project_usages.consumer_type_id, berth_project_usages.first_class) AS sums JOIN resource_classes ON resource_classes.id BETWEEN sums.first_class AND sums.first_class + 3 LEFT OUTER JOIN consumer_types ON consumer_types.id = sums.consumer_type_id UNION ALL SELECT NULL AS anon_1, -2, -2, NULL AS anon__1, sum(berth_project_usages.used_0) AS sum_1, sum(berth_project_usages.used_1) AS sum_2, sum(berth_project_usages.used_2) AS sum_3, sum(berth_project_usages.used_3) AS sum_4
FROM berth_project_usages
WHERE berth_project_usages.project_id = %(project_id_1)s::INTEGER
HAVING sum(berth_project_usages.used_0) != 0

-- store.usages._USED_BY
SELECT consumers.project_id, consumers.user_id, coalesce(consumers.consumer_type_id, 0) AS coalesce_1, allocations.resource_class_id, sum(allocations.used) AS sum_1, allocations.resource_provider_id
FROM allocations JOIN consumers ON consumers.uuid = allocations.consumer_id
WHERE consumers.uuid IN (__[POSTCOMPILE_consumers]) GROUP BY consumers.project_id, consumers.user_id, coalesce(consumers.consumer_type_id, 0), allocations.resource_class_id, allocations.resource_provider_id

-- store.usages._WRONG_PART
SELECT anon_1.project_id, anon_1.user_id, anon_1.consumer_type_id, anon_1.resource_class_id, CAST(sum(anon_1.stored) AS BIGINT) AS stored, CAST(sum(anon_1.counted) AS BIGINT) AS counted, CAST(sum(anon_1.corrected) AS BIGINT) AS corrected
FROM (SELECT berth_project_usages.project_id AS project_id, berth_project_usages.user_id AS user_id, berth_project_usages.consumer_type_id AS consumer_type_id, berth_project_usages.first_class + 0 AS resource_class_id, berth_project_usages.used_0 AS stored, 0 AS counted, CASE WHEN (berth_project_usages.writer_id = %(writer_id_1)s::INTEGER) THEN berth_project_usages.used_0 ELSE 0 END AS corrected
FROM berth_project_usages UNION ALL SELECT berth_project_usages.project_id AS project_id, berth_project_usages.user_id AS user_id, berth_project_usages.consumer_type_id AS consumer_type_id, berth_project_usages.first_class + 1 AS resource_class_id, berth_project_usages.used_1 AS stored, 0 AS counted, CASE WHEN (berth_project_usages.writer_id = %(writer_id_2)s::INTEGER) THEN berth_project_usages.used_1 ELSE 0 END AS corrected
FROM berth_project_usages UNION ALL SELECT berth_project_usages.project_id AS project_id, berth_project_usages.user_id AS user_id, berth_project_usages.consumer_type_id AS consumer_type_id, berth_project_usages.first_class + 2 AS resource_class_id, berth_project_usages.used_2 AS stored, 0 AS counted, CASE WHEN (berth_project_usages.writer_id = %(writer_id_3)s::INTEGER) THEN berth_project_usages.used_2 ELSE 0 END AS corrected
FROM berth_project_usages UNION ALL SELECT berth_project_usages.project_id AS project_id, berth_project_usages.user_id AS user_id, berth_project_usages.consumer_type_id AS consumer_type_id, berth_project_usages.first_class + 3 AS resource_class_id, berth_project_usages.used_3 AS stored, 0 AS counted, CASE WHEN (berth_project_usages.writer_id = %(writer_id_4)s::INTEGER) THEN berth_project_usages.used_3 ELSE 0 END AS corrected
FROM berth_project_usages UNION ALL SELECT counted.project_id AS project_id, counted.user_id AS user_id, counted.coalesce_1 AS coalesce_1, counted.resource_class_id AS resource_class_id, 0, counted.sum_1 AS sum_1, 0
FROM (SELECT consumers.project_id AS project_id, consumers.user_id AS user_id, coalesce(consumers.consumer_type_id, 0) AS coalesce_1, allocations.resource_class_id AS resource_class_id, sum(allocations.used) AS sum_1
FROM allocations JOIN consumers ON consumers.uuid = allocations.consumer_id GROUP BY consumers.project_id, consumers.user_id, coalesce(consumers.consumer_type_id, 0), allocations.resource_class_id UNION ALL SELECT consumers.project_id AS project_id, consumers.user_id AS user_id, coalesce(consumers.consumer_type_id, 0) AS coalesce_1, -1, count(*) AS count_1
FROM consumers
WHERE EXISTS (SELECT *
FROM allocations
WHERE allocations.consumer_id = consumers.uuid) GROUP BY consumers.project_id, consumers.user_id, coalesce(consumers.consumer_type_id, 0)) AS counted) AS anon_1 GROUP BY anon_1.project_id, anon_1.user_id, anon_1.consumer_type_id, anon_1.resource_class_id
HAVING sum(anon_1.stored) != sum(anon_1.counted)
 LIMIT %(part_max)s::INTEGER

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
UPDATE resource_providers SET root_provider_id=%(root)s::INTEGER, parent_provider_id=%(parent)s::INTEGER WHERE resource_providers.id = %(provider)s::INTEGER

-- upkeep.integrity.consumers._FORGET
DELETE FROM consumers WHERE consumers.id = %(consumer)s::INTEGER AND consumers.generation = %(seen)s::INTEGER AND NOT (EXISTS (SELECT *
FROM allocations
WHERE allocations.consumer_id = consumers.uuid))

-- upkeep.integrity.consumers._IDLE
SELECT consumers.id AS consumer, consumers.uuid, consumers.generation AS seen
FROM consumers
WHERE consumers.generation >= %(generation_1)s::INTEGER AND NOT (EXISTS (SELECT *
FROM allocations
WHERE allocations.consumer_id = consumers.uuid))

-- upkeep.integrity.consumers._RECORDS
SELECT consumers.id AS consumer, consumers.uuid, consumers.generation AS seen
FROM consumers

-- upkeep.integrity.consumers._RESTART
UPDATE consumers SET updated_at=%(now)s::TIMESTAMP WITHOUT TIME ZONE, generation=%(generation)s::INTEGER WHERE consumers.id = %(consumer)s::INTEGER AND consumers.generation < %(generation_1)s::INTEGER

-- upkeep.integrity.consumers._UNRECORDED
SELECT DISTINCT allocations.consumer_id
FROM allocations
WHERE NOT (EXISTS (SELECT *
FROM consumers
WHERE consumers.uuid = allocations.consumer_id))

-- upkeep.integrity.own._FORGET_DRAINED
DELETE FROM berth_drained WHERE berth_drained.drain_id = %(of_drain)s::INTEGER AND berth_drained.provider_id = %(of_provider)s::INTEGER AND (NOT (EXISTS (SELECT *
FROM berth_drains
WHERE berth_drains.id = berth_drained.drain_id)) OR NOT (EXISTS (SELECT *
FROM resource_providers
WHERE berth_drained.provider_id = resource_providers.id AND berth_drained.provider_uuid = resource_providers.uuid)))

-- upkeep.integrity.own._FORGET_LEASE
DELETE FROM berth_leases WHERE berth_leases.id = %(lease_id)s::INTEGER AND NOT (EXISTS (SELECT *
FROM consumers
WHERE berth_leases.consumer_uuid = consumers.uuid AND berth_leases.consumer_id = consumers.id AND berth_leases.consumer_created_at IS NOT DISTINCT FROM consumers.created_at AND berth_leases.consumer_generation = consumers.generation))

-- upkeep.integrity.own._FORGET_NAME
DELETE FROM berth_consumer_names WHERE berth_consumer_names.id = %(name_id)s::INTEGER AND NOT (EXISTS (SELECT *
FROM consumers
WHERE consumers.uuid = berth_consumer_names.consumer_uuid))

-- upkeep.integrity.own._FORGET_NOTES
DELETE FROM berth_journal WHERE berth_journal.writer_id = %(writer)s::INTEGER AND NOT (EXISTS (SELECT *
FROM berth_writer
WHERE berth_writer.id = berth_journal.writer_id AND berth_writer.seq >= berth_journal.seq))

-- upkeep.integrity.own._FORGET_PLACEMENT
DELETE FROM berth_placements WHERE berth_placements.id = %(number)s::INTEGER

-- upkeep.integrity.stock._INVENTORIES
SELECT inventories.id AS row, inventories.resource_provider_id AS provider, named_provider.uuid AS provider_uuid, named_provider.name AS provider_name, inventories.resource_class_id AS class_id, named_class.name AS class_name
FROM inventories LEFT OUTER JOIN resource_providers AS named_provider ON named_provider.id = inventories.resource_provider_id LEFT OUTER JOIN resource_classes AS named_class ON named_class.id = inventories.resource_class_id

-- upkeep.integrity.trees._BAD_GENERATIONS
SELECT resource_providers.generation, resource_providers.id AS provider, named_provider.uuid AS provider_uuid, named_provider.name AS provider_name
FROM resource_providers LEFT OUTER JOIN resource_providers AS named_provider ON named_provider.id = resource_providers.id
WHERE resource_providers.generation IS NULL OR resource_providers.generation < %(generation_1)s::INTEGER

-- upkeep.integrity.trees._RESTART
UPDATE resource_providers SET updated_at=%(now)s::TIMESTAMP WITHOUT TIME ZONE, generation=%(generation)s::INTEGER WHERE resource_providers.id = %(provider)s::INTEGER AND (resource_providers.generation IS NULL OR resource_providers.generation < %(generation_1)s::INTEGER)

-- upkeep.integrity.trees._SET_ROOT
UPDATE resource_providers SET updated_at=%(now)s::TIMESTAMP WITHOUT TIME ZONE, root_provider_id=%(right)s::INTEGER WHERE resource_providers.id = %(provider)s::INTEGER AND coalesce(resource_providers.root_provider_id, %(coalesce_1)s::BIGINT) = %(stored)s::INTEGER

-- upkeep.left_state._CLOCK
SELECT berth_writer.id, berth_writer.seq
FROM berth_writer
WHERE berth_writer.seq > %(seq_1)s::BIGINT ORDER BY berth_writer.id

-- upkeep.left_state._FLEET[0]
SELECT count(*) AS count_1, coalesce(sum(CAST(resource_providers.id AS BIGINT)), %(coalesce_2)s::INTEGER) AS coalesce_1, coalesce(sum(CAST(resource_providers.generation AS BIGINT)), %(coalesce_4)s::INTEGER) AS coalesce_3, coalesce(sum(CAST(resource_providers.parent_provider_id AS BIGINT)), %(coalesce_6)s::INTEGER) AS coalesce_5, coalesce(sum(CAST(CAST(floor(EXTRACT(epoch FROM coalesce(resource_providers.updated_at, resource_providers.created_at))) AS BIGINT) AS BIGINT)), %(coalesce_8)s::INTEGER) AS coalesce_7
FROM resource_providers

-- upkeep.left_state._FLEET[1]
SELECT count(*) AS count_1, coalesce(sum(CAST(inventories.id AS BIGINT)), %(coalesce_2)s::INTEGER) AS coalesce_1, coalesce(sum(CAST(inventories.total AS BIGINT)), %(coalesce_4)s::INTEGER) AS coalesce_3, coalesce(sum(CAST(CAST(floor(EXTRACT(epoch FROM coalesce(inventories.updated_at, inventories.created_at))) AS BIGINT) AS BIGINT)), %(coalesce_6)s::INTEGER) AS coalesce_5
FROM inventories

-- upkeep.left_state._FLEET[2]
SELECT count(*) AS count_1, coalesce(sum(CAST(resource_provider_traits.trait_id AS BIGINT)), %(coalesce_2)s::INTEGER) AS coalesce_1
FROM resource_provider_traits

-- upkeep.left_state._FLEET[3]
SELECT count(*) AS count_1, coalesce(sum(CAST(resource_provider_aggregates.aggregate_id AS BIGINT)), %(coalesce_2)s::INTEGER) AS coalesce_1, coalesce(sum(CAST(CAST(resource_provider_aggregates.aggregate_id AS BIGINT) * resource_provider_aggregates.resource_provider_id AS BIGINT)), %(coalesce_4)s::INTEGER) AS coalesce_3
FROM resource_provider_aggregates

-- upkeep.left_state._FLEET[4]
SELECT count(*) AS count_1, coalesce(sum(CAST(placement_aggregates.id AS BIGINT)), %(coalesce_2)s::INTEGER) AS coalesce_1
FROM placement_aggregates

-- upkeep.left_state._FLEET[5]
SELECT count(*) AS count_1, coalesce(sum(CAST(traits.id AS BIGINT)), %(coalesce_2)s::INTEGER) AS coalesce_1, coalesce(sum(CAST(CAST(floor(EXTRACT(epoch FROM coalesce(traits.updated_at, traits.created_at))) AS BIGINT) AS BIGINT)), %(coalesce_4)s::INTEGER) AS coalesce_3
FROM traits

-- upkeep.left_state._FLEET[6]
SELECT count(*) AS count_1, coalesce(sum(CAST(resource_classes.id AS BIGINT)), %(coalesce_2)s::INTEGER) AS coalesce_1, coalesce(sum(CAST(CAST(floor(EXTRACT(epoch FROM coalesce(resource_classes.updated_at, resource_classes.created_at))) AS BIGINT) AS BIGINT)), %(coalesce_4)s::INTEGER) AS coalesce_3
FROM resource_classes

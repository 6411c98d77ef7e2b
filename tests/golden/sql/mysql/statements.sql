-- store.aggregate_spellings._BY_SPELLING
SELECT placement_aggregates.uuid, placement_aggregates.id
FROM placement_aggregates
WHERE placement_aggregates.uuid IN (__[POSTCOMPILE_spellings]) ORDER BY placement_aggregates.id

-- store.aggregate_spellings._RESPELL
UPDATE placement_aggregates SET updated_at=%s, uuid=%s WHERE placement_aggregates.id = %s AND placement_aggregates.uuid = %s

-- store.aggregate_spellings._SPELL
UPDATE placement_aggregates SET uuid=%s WHERE placement_aggregates.uuid = %s

-- store.aggregates._JOIN
INSERT INTO resource_provider_aggregates (created_at, resource_provider_id, aggregate_id) VALUES (%s, %s, %s)

-- store.aggregates._LEAVE
DELETE FROM resource_provider_aggregates WHERE resource_provider_aggregates.resource_provider_id = %s AND resource_provider_aggregates.aggregate_id IN (__[POSTCOMPILE_aggregates])

-- store.aggregates._OF_PROVIDER
SELECT resource_provider_aggregates.aggregate_id
FROM resource_provider_aggregates
WHERE resource_provider_aggregates.resource_provider_id = %s

-- store.aggregates._SPELLINGS_OF_PROVIDER
SELECT placement_aggregates.uuid
FROM placement_aggregates INNER JOIN resource_provider_aggregates ON resource_provider_aggregates.aggregate_id = placement_aggregates.id
WHERE resource_provider_aggregates.resource_provider_id = %s ORDER BY placement_aggregates.id

-- store.allocations._OF_CONSUMER
SELECT resource_providers.uuid, resource_providers.generation, resource_classes.name, allocations.used, allocations.created_at, projects.external_id, users.external_id AS external_id_1, consumers.generation AS generation_1, consumer_types.name AS name_1
FROM allocations INNER JOIN resource_providers ON resource_providers.id = allocations.resource_provider_id INNER JOIN resource_classes ON resource_classes.id = allocations.resource_class_id INNER JOIN consumers ON consumers.uuid = allocations.consumer_id INNER JOIN projects ON projects.id = consumers.project_id INNER JOIN users ON users.id = consumers.user_id LEFT OUTER JOIN consumer_types ON consumer_types.id = consumers.consumer_type_id
WHERE allocations.consumer_id = %s ORDER BY allocations.id

-- store.allocations._OF_PROVIDER
SELECT consumers.uuid, consumers.generation, resource_classes.name, allocations.used, allocations.created_at
FROM allocations INNER JOIN resource_classes ON resource_classes.id = allocations.resource_class_id INNER JOIN consumers ON consumers.uuid = allocations.consumer_id
WHERE allocations.resource_provider_id = %s ORDER BY allocations.id

-- store.claims._CHANGE_USAGE
UPDATE berth_usages SET used=(berth_usages.used + %s), generation=coalesce(%s, berth_usages.generation) WHERE berth_usages.resource_provider_id = %s AND berth_usages.resource_class_id = %s AND (%s <= %s OR berth_usages.used + %s <= (SELECT (inventories.total - inventories.reserved) * (concat(inventories.allocation_ratio) + 0e0) AS anon_1
FROM inventories
WHERE inventories.resource_provider_id = berth_usages.resource_provider_id AND inventories.resource_class_id = berth_usages.resource_class_id))

-- store.claims._HELD_BY
SELECT allocations.consumer_id, allocations.resource_provider_id, allocations.resource_class_id, allocations.used
FROM allocations
WHERE allocations.consumer_id IN (__[POSTCOMPILE_consumers])

-- store.claims._INSERT
INSERT INTO allocations (created_at, resource_provider_id, consumer_id, resource_class_id, used) VALUES (%s, %s, %s, %s, %s)

-- store.claims._RELEASE
DELETE FROM allocations WHERE allocations.consumer_id IN (__[POSTCOMPILE_consumers])

-- store.claims._ROOMS
SELECT inventories.resource_provider_id, inventories.resource_class_id, berth_usages.used, berth_usages.generation, resource_providers.generation AS generation_1, inventories.total, inventories.reserved, inventories.min_unit, inventories.max_unit, inventories.step_size, inventories.allocation_ratio
FROM inventories INNER JOIN berth_usages ON berth_usages.resource_provider_id = inventories.resource_provider_id AND berth_usages.resource_class_id = inventories.resource_class_id INNER JOIN resource_providers ON resource_providers.id = inventories.resource_provider_id
WHERE inventories.resource_provider_id IN (__[POSTCOMPILE_providers])

-- store.consumers._BY_UUID
SELECT consumers.id, consumers.uuid, consumers.generation, consumers.consumer_type_id
FROM consumers
WHERE consumers.uuid IN (__[POSTCOMPILE_uuids])

-- store.consumers._DELETE
DELETE FROM consumers WHERE consumers.id = %s AND consumers.generation = %s

-- store.consumers._IDS
SELECT 0, projects.external_id, projects.id
FROM projects
WHERE projects.external_id IN (__[POSTCOMPILE_names_0]) UNION ALL SELECT 1, users.external_id, users.id
FROM users
WHERE users.external_id IN (__[POSTCOMPILE_names_1]) UNION ALL SELECT 2, consumer_types.name, consumer_types.id
FROM consumer_types
WHERE consumer_types.name IN (__[POSTCOMPILE_names_2])

-- store.consumers._INSERT
INSERT INTO consumers (created_at, uuid, project_id, user_id, generation, consumer_type_id) VALUES (%s, %s, %s, %s, %s, %s)

-- store.consumers._UPDATE
UPDATE consumers SET updated_at=%s, project_id=%s, user_id=%s, generation=(consumers.generation + %s), consumer_type_id=%s WHERE consumers.id = %s AND consumers.generation = %s

-- store.engine.journal._FENCE
UPDATE berth_writer SET seq=(berth_writer.seq + %s), updated_at=%s, kept_seq=(%s + %s) WHERE berth_writer.id = %s AND berth_writer.seq = %s

-- store.engine.journal._FORGET
DELETE FROM berth_journal WHERE berth_journal.writer_id = %s AND berth_journal.seq <= %s

-- store.engine.journal._HORIZONS
SELECT berth_writer.id, coalesce((SELECT berth_journal.seq - %s AS anon_1
FROM berth_journal
WHERE berth_journal.writer_id = berth_writer.id AND berth_journal.created_at >= %s ORDER BY berth_journal.seq
 LIMIT %s), (SELECT max(berth_journal.seq) AS max_1
FROM berth_journal
WHERE berth_journal.writer_id = berth_writer.id)) AS coalesce_1
FROM berth_writer

-- store.engine.journal._MARK
UPDATE berth_writer SET trimmed_seq=%s WHERE berth_writer.id = %s AND berth_writer.trimmed_seq < %s

-- store.engine.journal._MOVE
UPDATE berth_writer SET seq=(berth_writer.seq + %s), updated_at=%s, kept_seq=(%s + %s) WHERE berth_writer.id = %s AND berth_writer.seq = %s

-- store.engine.journal._NOTE
INSERT INTO berth_journal (writer_id, seq, provider_id, usage_only, created_at) VALUES (%s, %s, %s, %s, %s)

-- store.foreign_writes._CLASS_NAMES
SELECT resource_classes.id, resource_classes.name
FROM resource_classes

-- store.foreign_writes._MOVED
SELECT resource_providers.id, resource_providers.uuid, resource_providers.name, resource_providers.generation, max(berth_usages.generation) AS known
FROM resource_providers LEFT OUTER JOIN inventories ON inventories.resource_provider_id = resource_providers.id LEFT OUTER JOIN berth_usages ON berth_usages.resource_provider_id = resource_providers.id
WHERE resource_providers.id IN (__[POSTCOMPILE_providers]) AND (inventories.id IS NOT NULL OR berth_usages.resource_provider_id IS NOT NULL) GROUP BY resource_providers.id, resource_providers.uuid, resource_providers.name, resource_providers.generation
HAVING coalesce(max(berth_usages.generation), %s) != coalesce(resource_providers.generation, %s)

-- store.foreign_writes._OLDER_BERTHS
SELECT count(*) AS count_1
FROM berth_writer
WHERE berth_writer.kept_seq != berth_writer.seq

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

-- store.index_feed._OF_ROOTS[0]
SELECT resource_providers.id, resource_providers.uuid, resource_providers.parent_provider_id, resource_providers.root_provider_id
FROM resource_providers
WHERE resource_providers.root_provider_id IN (__[POSTCOMPILE_roots])

-- store.index_feed._OF_ROOTS[1]
SELECT inventories.resource_provider_id, inventories.resource_class_id, inventories.total - inventories.reserved AS anon_1, inventories.allocation_ratio, coalesce(berth_usages.used, %s) AS coalesce_1, inventories.min_unit, inventories.max_unit, inventories.step_size
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

-- store.index_feed._OF_ROOT_RANGE[0]
SELECT resource_providers.id, resource_providers.uuid, resource_providers.parent_provider_id, resource_providers.root_provider_id
FROM resource_providers
WHERE resource_providers.root_provider_id > %s AND resource_providers.root_provider_id <= %s

-- store.index_feed._OF_ROOT_RANGE[1]
SELECT inventories.resource_provider_id, inventories.resource_class_id, inventories.total - inventories.reserved AS anon_1, inventories.allocation_ratio, coalesce(berth_usages.used, %s) AS coalesce_1, inventories.min_unit, inventories.max_unit, inventories.step_size
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

-- store.index_feed._USAGES
SELECT berth_usages.resource_provider_id, berth_usages.resource_class_id, berth_usages.used
FROM berth_usages
WHERE berth_usages.resource_provider_id IN (__[POSTCOMPILE_providers])

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

-- store.inventories._ROWS
SELECT inventories.resource_provider_id, inventories.resource_class_id, resource_classes.name, inventories.total, inventories.reserved, inventories.min_unit, inventories.max_unit, inventories.step_size, inventories.allocation_ratio, coalesce(inventories.updated_at, inventories.created_at) AS coalesce_1
FROM inventories INNER JOIN resource_classes ON resource_classes.id = inventories.resource_class_id

-- store.inventories._ROWS_OF_PROVIDER
SELECT inventories.resource_provider_id, inventories.resource_class_id, resource_classes.name, inventories.total, inventories.reserved, inventories.min_unit, inventories.max_unit, inventories.step_size, inventories.allocation_ratio, coalesce(inventories.updated_at, inventories.created_at) AS coalesce_1
FROM inventories INNER JOIN resource_classes ON resource_classes.id = inventories.resource_class_id
WHERE inventories.resource_provider_id = %s ORDER BY inventories.resource_class_id

-- store.inventories._UPDATE
UPDATE inventories SET updated_at=%s, total=%s, reserved=%s, min_unit=%s, max_unit=%s, step_size=%s, allocation_ratio=%s WHERE inventories.resource_provider_id = %s AND inventories.resource_class_id = %s

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

-- store.providers._PROVIDERS
SELECT resource_providers.id, resource_providers.uuid, resource_providers.name, resource_providers.generation, parent.uuid AS uuid_1, coalesce(root.uuid, resource_providers.uuid) AS coalesce_1, resource_providers.created_at, resource_providers.updated_at
FROM resource_providers LEFT OUTER JOIN resource_providers AS parent ON parent.id = resource_providers.parent_provider_id LEFT OUTER JOIN resource_providers AS root ON root.id = resource_providers.root_provider_id

-- store.providers._PROVIDERS_OF_TREE
SELECT resource_providers.id, resource_providers.uuid, resource_providers.name, resource_providers.generation, parent.uuid AS uuid_1, coalesce(root.uuid, resource_providers.uuid) AS coalesce_1, resource_providers.created_at, resource_providers.updated_at
FROM resource_providers LEFT OUTER JOIN resource_providers AS parent ON parent.id = resource_providers.parent_provider_id LEFT OUTER JOIN resource_providers AS root ON root.id = resource_providers.root_provider_id
WHERE resource_providers.root_provider_id = (SELECT `member`.root_provider_id
FROM resource_providers AS `member`
WHERE `member`.uuid = %s) ORDER BY resource_providers.id

-- store.providers._PROVIDER_BY_UUID
SELECT resource_providers.id, resource_providers.uuid, resource_providers.name, resource_providers.generation, parent.uuid AS uuid_1, coalesce(root.uuid, resource_providers.uuid) AS coalesce_1, resource_providers.created_at, resource_providers.updated_at
FROM resource_providers LEFT OUTER JOIN resource_providers AS parent ON parent.id = resource_providers.parent_provider_id LEFT OUTER JOIN resource_providers AS root ON root.id = resource_providers.root_provider_id
WHERE resource_providers.uuid = %s

-- store.resource_classes._INSERT
INSERT INTO resource_classes (id, name, created_at) SELECT CASE WHEN (max(resource_classes.id) >= %s) THEN max(resource_classes.id) + %s ELSE %s END AS anon_1, %s AS anon_2, %s AS anon_3
FROM resource_classes

-- store.traits._GIVE
INSERT INTO resource_provider_traits (created_at, trait_id, resource_provider_id) VALUES (%s, %s, %s)

-- store.traits._IDS_OF_PROVIDER
SELECT resource_provider_traits.trait_id
FROM resource_provider_traits
WHERE resource_provider_traits.resource_provider_id = %s

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

-- store.usage_counts._CORRECT
UPDATE berth_usages SET used=%s WHERE berth_usages.resource_provider_id = %s AND berth_usages.resource_class_id = %s AND berth_usages.used = %s

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

-- store.usage_counts._LEVEL_PART
UPDATE berth_usages SET generation=(SELECT resource_providers.generation
FROM resource_providers
WHERE resource_providers.id = berth_usages.resource_provider_id) WHERE berth_usages.generation IS NULL AND berth_usages.resource_provider_id > %s AND berth_usages.resource_provider_id <= %s

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

-- store.usages._OF_PROVIDER
SELECT resource_classes.name, berth_usages.used
FROM berth_usages INNER JOIN resource_classes ON resource_classes.id = berth_usages.resource_class_id
WHERE berth_usages.resource_provider_id = %s ORDER BY berth_usages.resource_class_id

-- upkeep.copying.run._REFER
UPDATE resource_providers SET root_provider_id=%s, parent_provider_id=%s WHERE resource_providers.id = %s

-- upkeep.data_migrations.UNRECORDED
SELECT DISTINCT allocations.consumer_id
FROM allocations
WHERE NOT (EXISTS (SELECT *
FROM consumers
WHERE consumers.uuid = allocations.consumer_id))

-- upkeep.data_migrations._SET_ROOT
UPDATE resource_providers SET updated_at=%s, root_provider_id=%s WHERE resource_providers.id = %s AND coalesce(resource_providers.root_provider_id, %s) = %s

-- upkeep.integrity.consumers.UNRECORDED
SELECT DISTINCT allocations.consumer_id
FROM allocations
WHERE NOT (EXISTS (SELECT *
FROM consumers
WHERE consumers.uuid = allocations.consumer_id))

-- upkeep.integrity.consumers._FORGET
DELETE FROM consumers WHERE consumers.id = %s AND consumers.generation = %s AND NOT (EXISTS (SELECT *
FROM allocations
WHERE allocations.consumer_id = consumers.uuid))

-- upkeep.integrity.consumers._IDLE
SELECT consumers.id, consumers.uuid, consumers.generation
FROM consumers
WHERE consumers.generation > %s AND NOT (EXISTS (SELECT *
FROM allocations
WHERE allocations.consumer_id = consumers.uuid))

-- upkeep.integrity.consumers._RECORDS
SELECT consumers.id, consumers.uuid, consumers.generation
FROM consumers

-- upkeep.integrity.consumers._RESTART
UPDATE consumers SET updated_at=%s, generation=%s WHERE consumers.id = %s AND consumers.generation < %s

-- upkeep.integrity.stock._INVENTORIES
SELECT inventories.id AS `row`, inventories.resource_provider_id AS provider, named_provider.uuid AS provider_uuid, named_provider.name AS provider_name, inventories.resource_class_id AS class_id, named_class.name AS class_name
FROM inventories LEFT OUTER JOIN resource_providers AS named_provider ON named_provider.id = inventories.resource_provider_id LEFT OUTER JOIN resource_classes AS named_class ON named_class.id = inventories.resource_class_id

-- upkeep.integrity.stock._MOVED
SELECT moved.generation AS generation, moved.known AS known, moved.id AS provider, named_provider.uuid AS provider_uuid, named_provider.name AS provider_name
FROM (SELECT resource_providers.id AS id, resource_providers.generation AS generation, max(berth_usages.generation) AS known
FROM resource_providers INNER JOIN berth_usages ON berth_usages.resource_provider_id = resource_providers.id GROUP BY resource_providers.id, resource_providers.generation
HAVING coalesce(max(berth_usages.generation), %s) != coalesce(resource_providers.generation, %s)) AS moved LEFT OUTER JOIN resource_providers AS named_provider ON named_provider.id = moved.id
WHERE moved.generation >= %s

-- upkeep.integrity.trees._BAD_GENERATIONS
SELECT resource_providers.generation, resource_providers.id AS provider, named_provider.uuid AS provider_uuid, named_provider.name AS provider_name
FROM resource_providers LEFT OUTER JOIN resource_providers AS named_provider ON named_provider.id = resource_providers.id
WHERE resource_providers.generation IS NULL OR resource_providers.generation < %s

-- upkeep.integrity.trees._RESTART
UPDATE resource_providers SET updated_at=%s, generation=%s WHERE resource_providers.id = %s AND (resource_providers.generation IS NULL OR resource_providers.generation < %s)

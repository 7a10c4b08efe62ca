package sqlsource

import "github.com/locksteward/locksteward"

// Shipped returns the lock tables that are known without a configuration.
func Shipped() []Table {
	return []Table{
		// liquibase/liquibase, LockDatabaseChangeLogGenerator.java, UnlockDatabaseChangeLogGenerator.java.
		{
			Library: "liquibase", Table: "databasechangeloglock", Name: []string{"id"}, Holder: "lockedby", Since: "lockgranted",
			Held: "locked is true", Release: "set locked = false, lockgranted = null, lockedby = null",
		},
		// lukas-krecan/ShedLock, SqlStatementsSource.java. Its LockRecordRegistry remembers which rows
		// exist, so that a deleted one is not created again (ShedLock#27): rows are updated.
		{
			Library: "shedlock", Table: "shedlock", Name: []string{"name"}, Holder: "locked_by", Since: "locked_at", Until: "lock_until",
			Release: "set lock_until = now", host: true,
		},
		// spring-projects/spring-integration, DefaultLockRepository.java: from 7.0 on with EXPIRED_AFTER; before, a
		// renewal writes CREATED_DATE, and how long a lock lasts is known to its clients alone.
		{
			Library: "spring-integration-jdbc", Table: "int_lock", Name: []string{"region", "lock_key"}, Holder: "client_id", Until: "expired_after",
			Rewritten: true, Release: "delete",
		},
		{
			Library: "spring-integration-jdbc", Table: "int_lock", Name: []string{"region", "lock_key"}, Holder: "client_id",
			Rewritten: true, Release: "delete",
		},
		// quartz-scheduler/quartz, StdJDBCDelegate.java: each scheduler writes when it was there last.
		{
			Library: "quartz", Table: "qrtz_scheduler_state", Name: []string{"sched_name", "instance_name"}, Holder: "instance_name",
			Until: "last_checkin_time", For: "checkin_interval", Rewritten: true,
			noRelease: "the row is how a scheduler says that it runs; another scheduler of the cluster removes it and recovers its jobs",
		},
		// knex/knex, lib/migrations/migrate/Migrator.js.
		{Library: "knex", Table: "knex_migrations_lock", Name: []string{"index"}, Held: "is_locked is true", Release: "set is_locked = false"},
		// golang-migrate/migrate, database/cockroachdb/cockroachdb.go, database/yugabytedb/yugabytedb.go.
		{Library: "golang-migrate", Table: "schema_lock", Name: []string{"lock_id"}, Release: "delete"},
		// golang-migrate/migrate, database/postgres/postgres.go: dirty is set before a migration and cleared after it.
		{
			Library: "golang-migrate", Table: "schema_migrations", Name: []string{"version"}, Held: "dirty is true", dirty: true,
			noRelease: "it marks a migration that failed half-way: repair the schema, then run `migrate force VERSION`",
		},
		// riverqueue/river, river_leader.sql.
		{
			Library: "river", Table: "river_leader", Name: []string{"name"}, Holder: "leader_id", Since: "elected_at", Until: "expires_at",
			Release: "delete",
		},
		// oban-bg/oban, lib/oban/peers/database.ex.
		{
			Library: "oban", Table: "oban_peers", Name: []string{"name"}, Holder: "node", Since: "started_at", Until: "expires_at",
			Release: "delete",
		},
		// graphile/worker, sql/000011.sql and forceUnlockWorkers: a job or queue is taken over after 4 h.
		{
			Library: "graphile-worker", Table: "graphile_worker._private_jobs", Name: []string{"id"}, Holder: "locked_by", Since: "locked_at",
			Until: "locked_at", For: "4h", Release: "set locked_at = null, locked_by = null",
		},
		{
			Library: "graphile-worker", Table: "graphile_worker._private_job_queues", Name: []string{"queue_name"}, Holder: "locked_by", Since: "locked_at",
			Until: "locked_at", For: "4h", Release: "set locked_at = null, locked_by = null",
		},
		// The same before version 0.16.
		{
			Library: "graphile-worker", Table: "graphile_worker.jobs", Name: []string{"id"}, Holder: "locked_by", Since: "locked_at",
			Until: "locked_at", For: "4h", Release: "set locked_at = null, locked_by = null",
		},
		{
			Library: "graphile-worker", Table: "graphile_worker.job_queues", Name: []string{"queue_name"}, Holder: "locked_by", Since: "locked_at",
			Until: "locked_at", For: "4h", Release: "set locked_at = null, locked_by = null",
		},
	}
}

// noUntil are the libraries whose rows say of no moment that they end then.
var noUntil = map[string]bool{"liquibase": true, "knex": true, "golang-migrate": true, "spring-integration-jdbc": true}

// Facts returns what is known of the locks of a library.
func Facts(library string) locksteward.LibraryFacts {
	return locksteward.LibraryFacts{NoTTLByDesign: noUntil[library]}
}

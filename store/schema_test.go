package store_test

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/locksteward/locksteward/internal/testkit/testpg"
	"github.com/locksteward/locksteward/store"
)

// Both databases come to the same tables, columns, keys and indexes.
func TestSchemasAreEqual(t *testing.T) {
	dsn := testpg.Database(t)
	t.Parallel()
	file, server := schemaOfSQLite(t, openFile(t)), schemaOfPostgres(t, openAt(t, dsn))
	if len(file) < 90 {
		t.Fatalf("only %d facts of the schema: %v", len(file), file)
	}
	for _, f := range file {
		if !slices.Contains(server, f) {
			t.Errorf("PostgreSQL lacks %s", f)
		}
	}
	for _, f := range server {
		if !slices.Contains(file, f) {
			t.Errorf("SQLite lacks %s", f)
		}
	}
}

// typeNames are the three types that there are, in the words of both.
var typeNames = map[string]string{
	"INTEGER": "number", "TEXT": "text", "BLOB": "bytes", "bigint": "number", "text": "text", "bytea": "bytes",
}

func facts(t *testing.T, s *store.Store, query string) []string {
	t.Helper()
	rows, err := s.SQL().QueryContext(t.Context(), query)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	var out []string
	for rows.Next() {
		var kind, a, b string
		if err := rows.Scan(&kind, &a, &b); err != nil {
			t.Fatal(err)
		}
		if kind == "column" {
			name, ok := typeNames[b]
			if !ok {
				t.Errorf("%s is of type %s", a, b)
			}
			b = name
		}
		out = append(out, strings.Join([]string{kind, a, b}, " "))
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	slices.Sort(out)
	return out
}

func schemaOfSQLite(t *testing.T, s *store.Store) []string {
	t.Helper()
	out := facts(t, s, `
		SELECT 'column', m.name || '.' || c.name, c.type FROM sqlite_master m, pragma_table_info(m.name) c WHERE m.type = 'table'
		UNION ALL SELECT 'key', m.name || '.' || c.name, c.pk FROM sqlite_master m, pragma_table_info(m.name) c WHERE m.type = 'table' AND c.pk > 0
		UNION ALL SELECT 'nullable', m.name || '.' || c.name, '' FROM sqlite_master m, pragma_table_info(m.name) c
			WHERE m.type = 'table' AND c."notnull" = 0 AND c.pk = 0
		UNION ALL SELECT 'refers', m.name || '.' || f."from", f."table" FROM sqlite_master m, pragma_foreign_key_list(m.name) f WHERE m.type = 'table'
		UNION ALL SELECT 'index', name, sql FROM sqlite_master WHERE type = 'index' AND sql IS NOT NULL`)
	return normal(out)
}

func schemaOfPostgres(t *testing.T, s *store.Store) []string {
	t.Helper()
	out := facts(t, s, `
		SELECT 'column', (table_name || '.' || column_name)::text, data_type::text FROM information_schema.columns WHERE table_schema = 'public'
		UNION ALL SELECT 'key', (k.table_name || '.' || k.column_name)::text, k.ordinal_position::text FROM information_schema.key_column_usage k
			JOIN information_schema.table_constraints c USING (constraint_name, table_schema) WHERE c.constraint_type = 'PRIMARY KEY' AND table_schema = 'public'
		UNION ALL SELECT 'nullable', (table_name || '.' || column_name)::text, '' FROM information_schema.columns WHERE table_schema = 'public' AND is_nullable = 'YES'
		UNION ALL SELECT 'refers', (k.table_name || '.' || k.column_name)::text, u.table_name::text FROM information_schema.key_column_usage k
			JOIN information_schema.table_constraints c USING (constraint_name, table_schema)
			JOIN information_schema.constraint_column_usage u USING (constraint_name, table_schema) WHERE c.constraint_type = 'FOREIGN KEY'
		UNION ALL SELECT 'index', indexname::text, indexdef::text FROM pg_indexes WHERE schemaname = 'public' AND indexname NOT LIKE '%_pkey'`)
	return normal(out)
}

var (
	index  = regexp.MustCompile(`(?s)^index (\S+) CREATE (UNIQUE )?INDEX \S+ ON (?:public\.)?(\w+) (?:USING btree )?\(([^)]*)\)(?: *\n? *WHERE (.*))?$`)
	quoted = regexp.MustCompile(`'(\w+)'`)
)

// normal brings the definitions of indexes into one form: PostgreSQL rewrites
// their conditions.
func normal(all []string) []string {
	for i, f := range all {
		if m := index.FindStringSubmatch(strings.Join(strings.Fields(f), " ")); m != nil {
			where := quoted.FindAllString(m[5], -1)
			all[i] = fmt.Sprintf("index %s unique=%t %s(%s) %v", m[1], m[2] != "", m[3], m[4], where)
		}
	}
	return all
}

// Processes that open a new database at once create the schema once.
func TestOpeningAtOnce(t *testing.T) {
	dsn := testpg.Database(t)
	t.Parallel()
	var group sync.WaitGroup
	for range 6 {
		group.Go(func() {
			s, err := store.Open(t.Context(), dsn)
			if err != nil {
				t.Error(err)
				return
			}
			if _, err := s.DigestKey(t.Context()); err != nil {
				t.Error(err)
			}
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	var versions, keys int
	s := openAt(t, dsn)
	err := s.SQL().QueryRowContext(t.Context(), `SELECT (SELECT COUNT(*) FROM schema_version), (SELECT COUNT(*) FROM settings)`).Scan(&versions, &keys)
	if err != nil || versions != 1 || keys != 1 {
		t.Errorf("%d versions, %d keys, %v", versions, keys, err)
	}
}

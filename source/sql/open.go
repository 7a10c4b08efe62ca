package sqlsource

import (
	"cmp"
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/source"
)

// Options are the options of [Open] and [OpenReleaser].
type Options struct {
	Digest locksteward.DigestKey
	// Tables are lock tables beside those of [Shipped], which they precede.
	Tables []Table
	// Timeout bounds connecting and each statement; 0 is 10 s.
	Timeout time.Duration
	// MaxLocks bounds how many locks of a table, or of the database's sessions, are read; 0 is
	// 100,000. A part with more is not read.
	MaxLocks int
	// PollEvery is the least time between two reads of the watch; 0 is 1 s.
	PollEvery time.Duration
}

func (o Options) withDefaults() (Options, error) {
	o.Timeout = cmp.Or(o.Timeout, 10*time.Second)
	o.MaxLocks = cmp.Or(o.MaxLocks, 100_000)
	o.PollEvery = cmp.Or(o.PollEvery, time.Second)
	for i, t := range o.Tables {
		if err := t.Validate(); err != nil {
			return o, fmt.Errorf("tables[%d]: %w", i, err)
		}
		for _, other := range o.Tables[:i] {
			if t.Prefix != "" && other.Prefix != "" && (strings.HasPrefix(t.Prefix, other.Prefix) || strings.HasPrefix(other.Prefix, t.Prefix)) {
				return o, fmt.Errorf("tables[%d]: %w", i, field("prefix", t.Prefix, fmt.Sprintf("it must neither begin with %q of another table nor be its beginning", other.Prefix)))
			}
		}
		for _, taken := range []string{advisoryPrefix, userLockPrefix} {
			if t.Prefix != "" && (strings.HasPrefix(t.Prefix, taken) || strings.HasPrefix(taken, t.Prefix)) {
				return o, fmt.Errorf("tables[%d]: %w", i, field("prefix", t.Prefix, "it is that of locks of sessions: choose another"))
			}
		}
	}
	return o, nil
}

// Schemes are the schemes of URLs that are read.
var Schemes = []string{"postgres", "postgresql", "mysql", "mariadb"}

// dialectOf returns the dialect of a URL.
func dialectOf(url string) (dialect, error) {
	scheme, _, _ := strings.Cut(url, "://")
	switch scheme {
	case "postgres", "postgresql":
		return postgres{}, nil
	case "mysql", "mariadb":
		return mysqlDialect{}, nil
	}
	return nil, fmt.Errorf("unknown database %q in the URL: write one of %s", scheme, strings.Join(Schemes, ", "))
}

// database is one login to a database.
type database struct {
	dialect dialect
	addr    string
	opts    Options
	// loopback: addresses of this machine alone are believed, too. Only tests set it.
	loopback bool
}

// openDatabase returns the database of a login and its connections, of which there are none yet.
func openDatabase(login source.Login, opts Options, writes bool) (*database, *sql.DB, error) {
	opts, err := opts.withDefaults()
	if err != nil {
		return nil, nil, err
	}
	d, err := dialectOf(login.URL)
	if err != nil {
		return nil, nil, err
	}
	db, addr, err := d.open(login, opts.Timeout, writes)
	if err != nil {
		return nil, nil, err
	}
	return &database{dialect: d, addr: addr, opts: opts}, db, nil
}

// Open returns the source of the database of a login. It connects when it is used first;
// Close ends its connection.
func Open(login source.Login, opts Options) (*Source, error) {
	d, db, err := openDatabase(login, opts, false)
	if err != nil {
		return nil, err
	}
	return &Source{database: d, db: db, absent: map[string]absence{}, watch: newWatch()}, nil
}

// Ping asks the server for a sign of life.
func (s *Source) Ping(ctx context.Context) error { return s.db.PingContext(ctx) }

// within bounds a statement on our side of the network: a server that is there ends it sooner.
func (d *database) within(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, d.opts.Timeout+time.Second)
}

// now reads what the server is now.
func (d *database) now(ctx context.Context, db querier) (state, error) {
	ctx, cancel := d.within(ctx)
	defer cancel()
	return d.dialect.state(ctx, db)
}

// Close ends the connection. That it has ended before is no error.
func (s *Source) Close() error { return closeDB(s.db) }

func closeDB(db *sql.DB) error {
	err := db.Close()
	if err != nil && (errors.Is(err, driver.ErrBadConn) || err.Error() == "bad connection") { // MySQL's driver has one of its own
		return nil
	}
	return err
}

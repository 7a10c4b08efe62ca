package sqlsource

import (
	"errors"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
)

// postgresSays maps the codes of errors (PostgreSQL's documentation, appendix A) to what they
// mean and what to do.
var postgresSays = map[string]string{
	"28P01": "the server refused user or password; check username and password_file",
	"28000": "the server lets this user not log in from here; look at its roles and pg_hba.conf",
	"3D000": "the server has no such database; correct the name at the end of the URL",
	"53300": "the server has no connection left; raise max_connections or close some",
	"57P03": "the server is starting up or in recovery and takes no connections yet; wait",
	"57P01": "the server is shutting down or an administrator ended the connection; wait, or look at its log",
	"57014": "a statement took longer than the timeout; give the table an index on its lock columns, or look why the server is slow",
	"55P03": "a table is locked by a statement that alters it; it is read again in the next sweep",
	"25006": "the database is read-only; release on the primary",
	"42P01": "a table is gone; it is looked for again in the next sweep",
	"42703": "a column is gone; the table is looked at again in the next sweep",
}

// explain implements dialect.
func (postgres) explain(err error) string {
	e, ok := errors.AsType[*pgconn.PgError](err)
	if !ok {
		if strings.Contains(err.Error(), "server refused TLS connection") {
			return "the server does not speak TLS; remove tls, or switch it on there (ssl = on)"
		}
		return ""
	}
	switch {
	case e.Code == "42501":
		return "the database refused it: " + e.Message + "; grant what `locksteward acl` prints"
	case e.Code == "08P01" && strings.Contains(e.Message, "unsupported startup parameter"):
		return "a pooler answers, not PostgreSQL; point the target at the database itself: behind a pooler nobody can say whose session holds a lock"
	case postgresSays[e.Code] != "":
		return postgresSays[e.Code]
	}
	return "the server says: " + e.Message + " (" + e.Code + "); look at its log"
}

// missing implements dialect.
func (postgres) missing(err error) bool {
	e, ok := errors.AsType[*pgconn.PgError](err)
	return ok && (e.Code == "42P01" || e.Code == "42703" || e.Code == "3F000")
}

// denied implements dialect.
func (postgres) denied(err error) bool {
	e, ok := errors.AsType[*pgconn.PgError](err)
	return ok && e.Code == "42501"
}

package sqlsource

import (
	"database/sql/driver"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/go-sql-driver/mysql"
)

// mysqlSays maps the numbers of errors (MySQL's and MariaDB's error references) to what they mean and
// what to do.
var mysqlSays = map[uint16]string{
	1045: "the server refused user or password; check username and password_file",
	1698: "the server refused user or password; check username and password_file",
	1044: "the user has no right on the database; grant what `locksteward acl` prints",
	1049: "the server has no such database; correct the name at the end of the URL",
	1040: "the server has no connection left; raise max_connections or close some",
	1203: "the user has no connection left; raise max_user_connections or close some",
	1129: "the server blocks this host after failed connections; run FLUSH HOSTS there",
	1130: "the server lets no user log in from here; look at the hosts of its users",
	3118: "the account is locked; unlock it with ALTER USER … ACCOUNT UNLOCK",
	4151: "the account is locked; unlock it with ALTER USER … ACCOUNT UNLOCK",
	1820: "the password has expired; set a new one with ALTER USER",
	1862: "the password has expired; set a new one with ALTER USER",
	3159: "the server wants an encrypted connection; add ?tls=true to the URL",
	4201: "the server wants an encrypted connection; add ?tls=true to the URL",
	1053: "the server is shutting down; wait, or look at its log",
	1927: "somebody ended the connection; look at the server's log",
	1969: "a statement took longer than the timeout; give the table an index on its lock columns, or look why the server is slow",
	3024: "a statement took longer than the timeout; give the table an index on its lock columns, or look why the server is slow",
	1205: "a row or table is locked by somebody else (a statement that alters it, or an open transaction); it is tried again in the next sweep",
	1213: "it met a deadlock with another transaction and was rolled back; try again",
	1792: "the session is read-only; release on the primary",
	1836: "the server is read-only; release on the primary",
	1146: "a table is gone; it is looked for again in the next sweep",
	1054: "a column is gone; the table is looked at again in the next sweep",
}

// mysqlOption is the number of the error of a statement that an option of the server forbids.
const mysqlOption = 1290

// mysqlDenied are the numbers of errors that say that a right is missing.
var mysqlDenied = []uint16{1142, 1143, 1044, 1227, 1095, 1370, mysqlOption, 1792, 1836}

// mysqlNumber says whether an error of the server has one of some numbers.
func mysqlNumber(err error, numbers ...uint16) bool {
	e, ok := errors.AsType[*mysql.MySQLError](err)
	return ok && slices.Contains(numbers, e.Number)
}

// explain implements dialect.
func (mysqlDialect) explain(err error) string {
	e, ok := errors.AsType[*mysql.MySQLError](err)
	switch {
	case errors.Is(err, mysql.ErrNoTLS):
		return "the server does not speak TLS; remove tls, or switch it on there (ssl_cert, ssl_key)"
	case errors.Is(err, mysql.ErrUnknownPlugin), errors.Is(err, mysql.ErrCleartextPassword), errors.Is(err, mysql.ErrOldPassword):
		return "the user logs in in a way that is not supported; give it a password (mysql_native_password, caching_sha2_password or ed25519)"
	case errors.Is(err, mysql.ErrInvalidConn), errors.Is(err, driver.ErrBadConn), errors.Is(err, mysql.ErrMalformPkt):
		return "the connection broke; look whether the server, a proxy or a firewall ended it"
	case !ok:
		return ""
	case e.Number == mysqlOption && strings.Contains(e.Message, "read-only"):
		return "the server is read-only; release on the primary"
	case mysqlSays[e.Number] != "":
		return mysqlSays[e.Number]
	case slices.Contains(mysqlDenied, e.Number):
		return "the database refused it: " + e.Message + "; grant what `locksteward acl` prints"
	}
	return fmt.Sprintf("the server says: %s (%d); look at its log", e.Message, e.Number)
}

// missing implements dialect.
func (mysqlDialect) missing(err error) bool { return mysqlNumber(err, 1146, 1054) }

// denied implements dialect.
func (mysqlDialect) denied(err error) bool { return mysqlNumber(err, mysqlDenied...) }

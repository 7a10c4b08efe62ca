package acl

import (
	"cmp"

	"github.com/locksteward/locksteward/source/redis/connect"
)

// DefaultSentinel is the name of the user on Sentinels unless configured.
const DefaultSentinel = "locksteward"

// Ask says who asks Sentinels for the master.
type Ask struct {
	Name string // "" is [DefaultSentinel]
	Hash string // of its password
	// Follow says that it is notified of another master, as the failover client of an
	// application is, and of `locksteward exec`. The agent, scan and doctor ask anew.
	Follow bool
}

// followCommands are what a failover client of go-redis sends to a Sentinel beside
// the question for the master: it learns of other Sentinels, subscribes to what they
// announce, and looks whether that connection lives.
var followCommands = []string{"+sentinel|sentinels", "+subscribe", "+ping", "+client|setinfo"}

// followChannels are what a failover client of go-redis subscribes to.
var followChannels = []string{"&+switch-master", "&+replica-reconf-done"}

// Sentinel returns the user that asks Sentinels where the master is. Sentinels have
// users of their own: it is made on each of them.
func Sentinel(v Version, a Ask) (User, error) {
	if err := v.check(); err != nil {
		return User{}, err
	}
	u := User{
		Name: cmp.Or(a.Name, DefaultSentinel), PasswordHash: a.Hash,
		For:      "the agent, scan and doctor, on each Sentinel: asks where the master is, and nothing else",
		Commands: commands(v, connect.SentinelACL()...),
	}
	if a.Follow {
		u.For = "a failover client, such as that of an application or of exec, on each Sentinel: asks where the master is, and is notified of another one"
		u.Commands = append(u.Commands, commands(v, followCommands...)...)
		u.Channels = append(u.Channels, followChannels...)
	}
	u.Notes = append(u.Notes,
		"It is for each of the Sentinels, not for the servers behind them; SENTINEL FLUSHCONFIG there keeps it over a restart.",
		"Sentinels ask each other as the user default unless sentinel sentinel-user says otherwise: leave that one as it is, or they lose sight of each other.")
	return u, u.validate()
}

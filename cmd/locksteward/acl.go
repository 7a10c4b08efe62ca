package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/class"
	"github.com/locksteward/locksteward/config"
	"github.com/locksteward/locksteward/internal/lockstore"
	"github.com/locksteward/locksteward/source"
	"github.com/locksteward/locksteward/source/redis"
	"github.com/locksteward/locksteward/source/redis/acl"
	"github.com/locksteward/locksteward/source/redis/connect"
)

type aclFlags struct {
	server      serverFlags
	version     string
	config      string
	classes     string
	target      string
	read        []string
	noSelfCheck bool
	sentinels   bool

	app       string
	keys      []string
	keyPrefix string
	cluster   bool
	db        int

	passwordFile        string
	releasePasswordFile string
	output              aclFormat
}

// aclVersion is the server that is meant where nothing is said: what it takes,
// later ones take too.
const aclVersion = "7.0"

func aclCommand(p *program) *cobra.Command {
	var f aclFlags
	c := &cobra.Command{
		Use:   "acl [URL]",
		Short: "Print the users and rights that Locksteward and applications need",
		Long: `Acl prints Redis users with the least privileges: the scanner, which can only read;
with --config or --classes the releaser, which can only delete locks of classes
whose release is not off; with --app the user of an application that uses lock/.
With --sentinels it prints the user for Sentinels instead, which have users of
their own. It changes nothing.

For the URL of another store it prints the statements that grant the rights there: GRANT of a
database, roles of etcd, ACLs of ZooKeeper.

The list is for Redis ` + aclVersion + `, for --server-version, or for the version of the server at
URL: 6.2 to 8 and Valkey.

Passwords are printed as SHA-256 hashes, as ACLs accept them. They are read from
--password-file and --release-password-file, or from the files that the
configuration names; without one the output has a placeholder that no server
accepts. Weak passwords can be recovered from their hashes: keep the output secret.`,
		Example: `  locksteward acl redis://127.0.0.1:6379
  locksteward acl --server-version 'valkey 8.0' --password-file scanner.pw | redis-cli
  locksteward acl --config locksteward.yaml --target orders --output aclfile >> users.acl
  locksteward acl --app billing --keys 'lock:billing:*' --key-prefix billing:ls:
  locksteward acl --sentinels --password-file sentinel.pw | redis-cli -p 26379`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			sets, err := f.users(cmd, p)
			if err != nil {
				return err
			}
			return f.output.write(p, sets)
		},
	}
	flags := c.Flags()
	f.server.register(c, storeForms)
	flags.StringVar(&f.version, "server-version", "", "the server's product and version: 6.2, 7.0, 8.0, 'valkey 8.0' (default "+aclVersion+", or what the server at URL says)")
	flags.StringVar(&f.config, "config", "", "configuration file: prints the users of its targets, for its classes")
	flags.StringVar(&f.classes, "classes", "", "file with classes only, for the releaser without a whole configuration")
	flags.StringVar(&f.target, "target", "", "with --config: only the users of this target")
	flags.StringArrayVar(&f.read, "read", nil, "keys that the scanner may read, as a glob (default: all; may be repeated)")
	flags.BoolVar(&f.noSelfCheck, "no-self-check", false, "omit +acl|dryrun, with which the agent checks whether its user has too many rights")
	flags.BoolVar(&f.sentinels, "sentinels", false, "print the user for Sentinels instead: of the agent, of the targets of --config with Sentinels, or of --app")
	flags.StringVar(&f.app, "app", "", "print the user of an application that uses lock/")
	flags.StringArrayVar(&f.keys, "keys", nil, "with --app: names of its locks, as a glob (default: lock:NAME:*; may be repeated)")
	flags.StringVar(&f.keyPrefix, "key-prefix", "", "with --app: its lock.Options.KeyPrefix")
	flags.BoolVar(&f.cluster, "cluster", false, "with --app: the server is a Cluster (or give its URL)")
	flags.IntVar(&f.db, "db", 0, "with --app: the database that it uses")
	flags.StringVar(&f.passwordFile, "password-file", "", "file with the password of the scanner, of --app, or of the user on Sentinels")
	flags.StringVar(&f.releasePasswordFile, "release-password-file", "", "file with the password of the releaser")
	_ = c.RegisterFlagCompletionFunc("config", yamlFiles)
	_ = c.RegisterFlagCompletionFunc("classes", yamlFiles)
	f.output.register(c)
	return c
}

// aclSet is the users of one server.
type aclSet struct {
	Target  string // "" without a configuration
	Version acl.Version
	Users   []acl.User
	Notes   []string
	// Statements are what grants the rights on a store other than Redis, which has no Users and
	// no Version.
	Statements string
}

// ofStore is the rights on the store at the URL, which is no Redis.
func (f *aclFlags) ofStore(ctx context.Context) ([]aclSet, error) {
	if f.app != "" || f.sentinels || f.version != "" || f.output.value == "aclfile" {
		return nil, usagef("URL: --app, --sentinels, --server-version and --output aclfile only apply to Redis, remove them")
	}
	cfg, err := f.server.config()
	if err != nil {
		return nil, err
	}
	classes, err := class.NewMatchSet(f.read)
	if err != nil {
		return nil, usagef("--read: %w", err)
	}
	if f.classes != "" {
		judging, err := config.LoadRules(f.classes)
		if err != nil {
			return nil, usagef("--classes: %w", err)
		}
		classes = judging.Classes
	}
	text, err := lockstore.Rights(ctx, cfg, lockstore.RightsOptions{Classes: classes})
	if err != nil {
		return nil, usagef("%w", err)
	}
	return []aclSet{{Statements: text}}, nil
}

func (f *aclFlags) users(cmd *cobra.Command, p *program) ([]aclSet, error) {
	if err := f.check(cmd); err != nil {
		return nil, err
	}
	if a, err := lockstore.Parse(f.server.where()); err == nil && a.Kind != lockstore.Redis && f.config == "" {
		return f.ofStore(cmd.Context())
	}
	version, assumed, err := f.serverVersion(cmd.Context())
	if err != nil {
		return nil, err
	}
	var sets []aclSet
	switch {
	case f.sentinels:
		sets, err = f.onSentinels(version)
	case f.app != "":
		sets, err = f.application(version)
	case f.config != "":
		sets, err = f.ofTargets(cmd.Context(), p, version)
	default:
		sets, err = f.ofFlags(version)
	}
	if err != nil {
		return nil, err
	}
	if assumed && sets[0].Statements == "" {
		sets[0].Notes = append(sets[0].Notes, fmt.Sprintf("For %s; name another with --server-version, or the server with its URL.", version))
	}
	return sets, nil
}

// check refuses flags that do not go together.
func (f *aclFlags) check(cmd *cobra.Command) error {
	changed := cmd.Flags().Changed
	for _, name := range []string{"keys", "key-prefix", "cluster", "db"} {
		if f.app == "" && changed(name) {
			return usagef("--%s: only applies to an application, name it with --app", name)
		}
	}
	for _, name := range []string{"config", "classes", "target", "read", "no-self-check", "release-password-file"} {
		if f.app != "" && changed(name) {
			return usagef("--%s: cannot be used with --app", name)
		}
	}
	for _, name := range []string{"keys", "key-prefix", "cluster", "db", "classes", "read", "no-self-check", "release-password-file"} {
		if f.sentinels && changed(name) {
			return usagef("--%s: cannot be used with --sentinels: a Sentinel has no keys", name)
		}
	}
	switch {
	case changed("app") && f.app == "":
		return usagef("--app: is empty, write the name of the user")
	case f.config != "" && f.classes != "":
		return usagef("--classes: cannot be used with --config, which has classes")
	case f.target != "" && f.config == "":
		return usagef("--target: needs --config")
	case f.releasePasswordFile != "" && f.config == "" && f.classes == "":
		return usagef("--release-password-file: a releaser needs classes; add --config or --classes")
	case f.db < 0:
		return usagef("--db: got %d, write a number from 0", f.db)
	}
	return nil
}

// serverVersion is which version is meant; assumed says that nobody said.
func (f *aclFlags) serverVersion(ctx context.Context) (v acl.Version, assumed bool, err error) {
	if f.version != "" {
		if v, err = acl.ParseVersion(f.version); err != nil {
			return v, false, usagef("--server-version: %w", err)
		}
		return v, false, nil
	}
	if f.server.where() == "" || f.config != "" && f.server.url == "" { // the variable's server is none of the configuration
		v, err = acl.ParseVersion(aclVersion)
		return v, true, err
	}
	cfg, err := f.server.config()
	if err != nil {
		return v, false, err
	}
	conn, err := connect.Open(cfg)
	if err != nil {
		return v, false, usagef("%s: %w", f.server.source(), err)
	}
	v, err = f.ask(ctx, conn)
	return v, false, errors.Join(err, conn.Close())
}

func (f *aclFlags) ask(ctx context.Context, conn *connect.Conn) (acl.Version, error) {
	masters, err := conn.Masters(ctx)
	if err != nil {
		return acl.Version{}, fmt.Errorf("ask %s for its version: %s; or name it with --server-version", conn.Spec(), connect.Explain(err))
	}
	text, err := masters[0].Client.Info(ctx, "server").Result()
	if err != nil {
		return acl.Version{}, fmt.Errorf("ask %s for its version: %s; or name it with --server-version", conn.Spec(), connect.Explain(err))
	}
	v, ok := acl.VersionOf(text)
	if !ok {
		return v, fmt.Errorf("%s does not report its version; name it with --server-version", conn.Spec())
	}
	f.cluster = f.cluster || conn.Mode() == locksteward.ModeCluster
	f.db = cmp.Or(f.db, conn.DB())
	// A version that a person wrote is checked where it is read.
	return acl.ParseVersion(v.String())
}

func (f *aclFlags) application(v acl.Version) ([]aclSet, error) {
	hash, err := hashOf("--password-file", f.passwordFile)
	if err != nil {
		return nil, err
	}
	keys := f.keys
	if len(keys) == 0 {
		keys = []string{"lock:" + f.app + ":*"}
	}
	u, err := acl.Application(v, acl.App{
		Name: f.app, Hash: hash, Locks: keys, KeyPrefix: f.keyPrefix, DB: f.db, Cluster: f.cluster,
	})
	if err != nil {
		return nil, usagef("%w", err)
	}
	if len(f.keys) == 0 {
		u.Notes = append(u.Notes, "Its locks are assumed to be "+keys[0]+"; name them with --keys.")
	}
	return []aclSet{{Version: v, Users: []acl.User{u}}}, nil
}

func (f *aclFlags) ofFlags(v acl.Version) ([]aclSet, error) {
	hash, err := hashOf("--password-file", f.passwordFile)
	if err != nil {
		return nil, err
	}
	u, err := acl.Scanner(v, acl.Scan{Hash: hash, Read: f.read, NoSelfCheck: f.noSelfCheck})
	if err != nil {
		return nil, err
	}
	set := aclSet{Version: v, Users: []acl.User{u}}
	if f.classes == "" {
		set.Notes = []string{"No releaser: it needs classes, which say which locks it may delete; add --config or --classes."}
		return []aclSet{set}, nil
	}
	judging, err := config.LoadRules(f.classes)
	if err != nil {
		return nil, usagef("--classes: %w", err)
	}
	if hash, err = hashOf("--release-password-file", f.releasePasswordFile); err != nil {
		return nil, err
	}
	err = set.addReleaser(acl.Free{Hash: hash, Classes: judging.Classes.All()})
	return []aclSet{set}, err
}

// addReleaser adds the releaser, or says why there is none.
func (s *aclSet) addReleaser(f acl.Free) error {
	u, err := acl.Releaser(s.Version, f)
	if errors.Is(err, locksteward.ErrRefused) {
		s.Notes = append(s.Notes, "No releaser: "+strings.TrimSuffix(err.Error(), ": "+locksteward.ErrRefused.Error())+".")
		return nil
	}
	if err != nil {
		return err
	}
	s.Users = append(s.Users, u)
	return nil
}

func (f *aclFlags) ofTargets(ctx context.Context, p *program, v acl.Version) ([]aclSet, error) {
	cfg, err := loadTargets(ctx, p, f.config)
	if err != nil {
		return nil, err
	}
	classes, err := class.NewSet(cfg.Classes)
	if err != nil {
		return nil, usagef("%w", err)
	}
	var sets []aclSet
	for _, t := range cfg.Targets {
		if f.target != "" && t.Name != f.target {
			continue
		}
		set, err := f.ofTarget(ctx, v, t, classes)
		if err != nil {
			return nil, err
		}
		sets = append(sets, set)
	}
	if len(sets) == 0 {
		return nil, usagef("--target: %s has no target %q", f.config, f.target)
	}
	return sets, nil
}

func (f *aclFlags) ofTarget(ctx context.Context, v acl.Version, t config.Target, classes *class.Set) (aclSet, error) {
	if a, err := lockstore.Parse(t.URL); err == nil && a.Kind != lockstore.Redis {
		releaser := ""
		if t.ReleaseCredentials != nil {
			releaser = t.ReleaseCredentials.Username
		}
		cfg, err := t.Connect()
		if err != nil {
			return aclSet{}, usagef("%w", err)
		}
		text, err := lockstore.Rights(ctx, cfg, lockstore.RightsOptions{Releaser: releaser, Classes: classes, Tables: t.Tables})
		return aclSet{Target: t.Name, Statements: text}, err
	}
	spec, err := connect.Parse(t.URL)
	if err != nil {
		return aclSet{}, usagef("target %q: %w", t.Name, err)
	}
	set := aclSet{Target: t.Name, Version: v}
	hash, err := hashOf("password_file of target "+t.Name, cmp.Or(f.passwordFile, t.PasswordFile))
	if err != nil {
		return set, err
	}
	scan := acl.Scan{
		Name: cmp.Or(t.Username, spec.Username), Hash: hash, Read: f.read, NoSelfCheck: f.noSelfCheck, MetaPrefixes: t.RedisScan.MetaPrefixes,
	}
	if t.RedisScan.Watch == source.WatchKeyspace {
		scan.Keyspace = redis.ACLKeyspace(spec.DB, classes, t.RedisScan.MetaPrefixes...)
	}
	u, err := acl.Scanner(v, scan)
	if err != nil {
		return set, err
	}
	set.Users = append(set.Users, u)
	if scan.Name == "" {
		set.Notes = append(set.Notes, "The target has no username: write username: "+u.Name+" and its password_file.")
	}
	free := acl.Free{Classes: classes.All(), MetaPrefixes: t.RedisScan.MetaPrefixes}
	file := f.releasePasswordFile
	if t.ReleaseCredentials == nil {
		set.Notes = append(set.Notes, "The target has no release_credentials: this agent cannot delete until it has them.")
	} else {
		free.Name, file = t.ReleaseCredentials.Username, cmp.Or(file, t.ReleaseCredentials.PasswordFile)
	}
	if free.Hash, err = hashOf("release_credentials.password_file of target "+t.Name, file); err != nil {
		return set, err
	}
	return set, set.addReleaser(free)
}

// hashOf is the hash of the password in a file, "" for none.
func hashOf(flag, file string) (string, error) {
	password, err := config.ReadSecret(file)
	if err != nil {
		return "", usagef("%s: %w", flag, err)
	}
	if file != "" && password == "" {
		return "", usagef("%s: the first line of %q is empty, write the password there", flag, file)
	}
	return acl.Hash(password), nil
}

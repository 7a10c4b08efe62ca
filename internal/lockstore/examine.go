package lockstore

import (
	"context"
	"errors"
	"fmt"

	"github.com/locksteward/locksteward/class"
	"github.com/locksteward/locksteward/scanner"
	"github.com/locksteward/locksteward/source"
	"github.com/locksteward/locksteward/source/redis"
	"github.com/locksteward/locksteward/source/redis/connect"
	"github.com/locksteward/locksteward/source/redis/doctor"
	sqlsource "github.com/locksteward/locksteward/source/sql"
)

// ExamineOptions are the options of [Examine].
type ExamineOptions struct {
	// Target is the name on the report, Connect how its reader logs in, Release how its releaser
	// does; nil without one.
	Target  string
	Connect connect.Config
	Release *connect.Config
	// Classes are which locks are wanted.
	Classes *class.Set
	// Scan, Redis and PushTest are those of [doctor.Options]; other stores have no use for them.
	Scan     scanner.Config
	Redis    redis.Config
	PushTest bool
	// Tables are as in [Options].
	Tables []sqlsource.Table
}

// Examine checks a target, as `locksteward doctor` does. It does not fail: failures are in the
// report.
func Examine(ctx context.Context, o ExamineOptions) doctor.Report {
	a, err := Parse(o.Connect.URL)
	if err == nil && a.Kind == Redis {
		return doctor.Examine(ctx, doctor.Options{
			Target: o.Target, Connect: o.Connect, Release: o.Release, Classes: o.Classes, Scan: o.Scan, Redis: o.Redis, PushTest: o.PushTest,
		})
	}
	out := doctor.Report{Target: o.Target, URL: a.String(), Status: source.StatusOK, Checks: []source.Check{}}
	var reading source.Login
	var releasing *source.Login
	if err == nil {
		reading, err = login(a, o.Connect)
	}
	if err == nil && o.Release != nil {
		releasing = new(source.Login)
		if *releasing, err = login(a, *o.Release); err != nil {
			err = fmt.Errorf("release_credentials: %w", err)
		}
	}
	if err != nil {
		out.Checks = append(out.Checks, source.CheckFailed("connection", "the settings are wrong: "+err.Error(), "correct them"))
	} else {
		if o.Classes == nil {
			o.Classes = &class.Set{}
		}
		store := schemes[schemeOf(a)]
		out.Checks = append(out.Checks, store.check(ctx, reading, o)...)
		if releasing != nil {
			for _, c := range store.checkReleaser(ctx, *releasing, o) {
				c.Name = "releaser: " + c.Name
				out.Checks = append(out.Checks, c)
			}
		}
	}
	for _, c := range out.Checks {
		out.Status = doctor.Worse(out.Status, c.Status)
	}
	return out
}

// badSettings is the check of a login whose settings are wrong.
func badSettings(name string, err error) []source.Check {
	return []source.Check{source.CheckFailed(name, err.Error(), "correct the settings")}
}

// RightsOptions are the options of [Rights].
type RightsOptions struct {
	// Releaser is the user that releases; "" names an example.
	Releaser string
	// Classes are which locks are wanted; nil is no class.
	Classes *class.Set
	// Tables are as in [Options].
	Tables []sqlsource.Table
}

// Rights returns the statements that grant the least rights to who reads a target that is not
// a Redis, and to a releaser. It may ask the server what there is.
func Rights(ctx context.Context, cfg connect.Config, o RightsOptions) (string, error) {
	a, err := Parse(cfg.URL)
	if err != nil {
		return "", err
	}
	if a.Kind == Redis {
		return "", errors.New("the users of a Redis depend on its version")
	}
	if o.Classes == nil {
		o.Classes = &class.Set{}
	}
	login, err := login(a, cfg)
	if err != nil {
		return "", err
	}
	return schemes[schemeOf(a)].rights(ctx, login, o)
}

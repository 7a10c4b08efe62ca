package zksource

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/class"
)

// Rights returns the commands of zkCli.sh that grant the least rights on the directories that
// the classes name: to read, and to free locks. A user that is "" gets none. They name users,
// not passwords.
func Rights(reader, releaser string, classes *class.Set) string {
	var b strings.Builder
	parents, directories := named(newPlan(classes))
	for _, user := range []string{reader, releaser} {
		if user != "" {
			fmt.Fprintf(&b, "# HASH of %s: printf '%%s' '%s:PASSWORD' | openssl dgst -sha1 -binary | base64\n", user, user)
		}
	}
	b.WriteString("# CURRENT is what getAcl prints: setAcl replaces it. Nothing is to be done where world:anyone has the right.\n")
	b.WriteString("# Where there is a *, for each directory; later ones have the ACL that their application gives them.\n")
	grant := func(path string, rights ...string) {
		if list := strings.Join(rights, ""); list != "" {
			fmt.Fprintf(&b, "setAcl %s CURRENT%s\n", path, list)
		}
	}
	for _, path := range parents {
		grant(path, right(reader, "r"))
	}
	for _, path := range directories {
		grant(path, right(reader, "r"), right(releaser, "rd"))
	}
	if releaser != "" {
		b.WriteString("# To delete a fixed node the releaser needs d on the directory above, and r on the node. Its records:\n")
		fmt.Fprintf(&b, "create %s \"\"%s\n", DefaultRecords, strings.Replace(right(releaser, "crd"), ",", " ", 1))
	}
	return b.String()
}

// right is one element of an ACL, with a comma before it; "" without a user.
func right(user, perms string) string {
	if user == "" {
		return ""
	}
	return ",digest:" + user + ":HASH:" + perms
}

// named are the paths of a plan for people: those whose children are listed, and lock
// directories, with * for what is not known.
func named(p plan) (parents, directories []string) {
	for _, steps := range p.paths {
		at := "/"
		for i, s := range steps {
			if s.pattern != "" {
				parents = append(parents, at)
			}
			at = join(at, cmp.Or(s.literal, "*"))
			if i == len(steps)-1 {
				directories = append(directories, at)
			}
		}
	}
	for _, list := range []*[]string{&parents, &directories} {
		slices.Sort(*list)
		*list = slices.Compact(*list)
	}
	return parents, directories
}

// Check is one thing that was looked at, for the doctor.
type Check struct {
	Name string // server, session, directories, admin or records
	OK   bool
	// Found is what is the case, Todo what to do, "" for nothing.
	Found, Todo string
}

// Check looks whether the servers serve us, and whether all that the classes name can be read.
// A check that fails says what is seen without it.
func (s *Source) Check(ctx context.Context) []Check {
	var out []Check
	for _, server := range s.client.spec.servers {
		out = append(out, s.client.checkServer(ctx, server))
	}
	if _, err := s.client.get(ctx); err != nil {
		return append(out, Check{Name: "session", Found: s.Explain(err), Todo: "see the servers' logs; without a session nothing is seen"})
	}
	out = append(out, Check{Name: "session", OK: true, Found: "a server serves us"}, s.checkDirectories(ctx))
	for _, admin := range s.client.spec.admin {
		c := Check{Name: "admin", OK: true, Found: admin + " tells the addresses of sessions"}
		if err := connections(ctx, admin, map[int64]string{}); err != nil {
			c = Check{Name: "admin", Found: err.Error(), Todo: "open the admin server to the agent; without it the addresses of sessions are not seen, all else is"}
		}
		out = append(out, c)
	}
	return out
}

func (c *client) checkServer(ctx context.Context, server string) Check {
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	answer, err := c.fourLetters(ctx, server, "srvr")
	check := Check{Name: "server", Found: server + ": " + stateText(stateOf(answer), err)}
	switch state := stateOf(answer); {
	case err != nil:
		check.Todo = "start the server, or open the way to it; the others may serve meanwhile"
	case state == stateServing:
		_, mode, _ := strings.Cut(answer, "Mode: ")
		mode, _, _ = strings.Cut(mode, "\n")
		check.OK, check.Found = true, server+": "+mode
	case state == stateForbidden:
		check.OK, check.Found = true, server+": answers; whether it leads is not known, since 4lw.commands.whitelist does not have srvr"
	}
	return check
}

// checkDirectories reads all that the classes name, once.
func (s *Source) checkDirectories(ctx context.Context) Check {
	p, _ := s.currentPlan()
	r := reader{client: s.client}
	e, err := r.expand(ctx, p)
	if err != nil {
		return Check{Name: "directories", Found: s.Explain(err), Todo: "grant what `locksteward acl` prints; without it nothing below is seen"}
	}
	var refused []string
	for _, dir := range e.directories {
		if _, err := r.directory(ctx, dir); isAuth(err) {
			refused = append(refused, locksteward.DisplayKey(dir))
		} else if err != nil {
			return Check{Name: "directories", Found: s.Explain(err), Todo: "try again"}
		}
	}
	if n := len(refused); n > 0 {
		return Check{
			Name: "directories", Found: fmt.Sprintf("%d of %d cannot be read: %s", n, len(e.directories), strings.Join(refused[:min(n, 10)], ", ")),
			Todo: "grant READ as `locksteward acl` prints; the locks of the others are seen",
		}
	}
	if len(p.paths) == 0 {
		return Check{Name: "directories", Found: "no class names a path", Todo: "configure a class with a pattern such as /locks/*"}
	}
	return Check{Name: "directories", OK: true, Found: fmt.Sprintf("%d directories can be read", len(e.directories))}
}

// Check looks whether the releaser has a session and may leave records. Whether it may delete
// is not tried.
func (r *Releaser) Check(ctx context.Context) (c Check) {
	err := r.with(func(cl *client) error {
		_, found, err := (reader{client: cl}).stat(ctx, r.opts.Records)
		c = Check{Name: "records", OK: found, Found: r.opts.Records + " is there"}
		if !found {
			c.Found, c.Todo = r.opts.Records+" is not there", "create it as `locksteward acl` prints, unless the releaser may create it"
		}
		return err
	})
	if err != nil {
		return Check{Name: "records", Found: r.explain(err), Todo: "no lock can be released until the releaser reaches a server"}
	}
	return c
}

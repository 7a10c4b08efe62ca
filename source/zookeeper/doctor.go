package zksource

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/class"
	"github.com/locksteward/locksteward/source"
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

// Check reports whether the servers serve us, and whether all that the classes name can be read. A
// check that fails says what is not seen without it.
func (s *Source) Check(ctx context.Context) []source.Check {
	var out []source.Check
	for _, server := range s.client.spec.servers {
		out = append(out, s.client.checkServer(ctx, server))
	}
	if _, err := s.client.get(ctx); err != nil {
		return append(out, source.CheckFailed("session", s.Explain(err), "see the servers' logs; without a session nothing is seen"))
	}
	out = append(out, source.CheckOK("session", "a server serves us"), s.checkDirectories(ctx))
	for _, admin := range s.client.spec.admin {
		if err := connections(ctx, admin, map[int64]string{}); err != nil {
			out = append(out, source.CheckFailed("admin", err.Error(), "open the admin server to the agent; without it the addresses of sessions are not seen, all else is"))
		} else {
			out = append(out, source.CheckOK("admin", admin+" returns the addresses of sessions"))
		}
	}
	return out
}

func (c *client) checkServer(ctx context.Context, server string) source.Check {
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	answer, err := c.fourLetters(ctx, server, "srvr")
	state := stateOf(answer)
	switch {
	case err != nil:
		return source.CheckFailed("server", server+": "+stateText(state, err), "start the server, or open the way to it; the others may serve meanwhile")
	case state == stateServing:
		_, mode, _ := strings.Cut(answer, "Mode: ")
		mode, _, _ = strings.Cut(mode, "\n")
		return source.CheckOK("server", server+": "+mode)
	case state == stateForbidden:
		return source.CheckOK("server", server+": answers; whether it leads is not known, since 4lw.commands.whitelist does not have srvr")
	}
	return source.CheckFailed("server", server+": "+stateText(state, nil), "")
}

// checkDirectories reads all that the classes name, once.
func (s *Source) checkDirectories(ctx context.Context) source.Check {
	p, _ := s.currentPlan()
	r := reader{client: s.client}
	e, err := r.expand(ctx, p)
	if err != nil {
		return source.CheckFailed("directories", s.Explain(err), "grant what `locksteward acl` prints; without it nothing below is seen")
	}
	var refused []string
	for _, dir := range e.directories {
		if _, err := r.directory(ctx, dir); isAuth(err) {
			refused = append(refused, locksteward.DisplayKey(dir))
		} else if err != nil {
			return source.CheckFailed("directories", s.Explain(err), "try again")
		}
	}
	if n := len(refused); n > 0 {
		return source.CheckFailed("directories", fmt.Sprintf("%d of %d cannot be read: %s", n, len(e.directories), strings.Join(refused[:min(n, 10)], ", ")),
			"grant READ as `locksteward acl` prints; the locks of the others are seen")
	}
	if len(p.paths) == 0 {
		return source.CheckFailed("directories", "no class names a path", "configure a class with a pattern such as /locks/*")
	}
	return source.CheckOK("directories", fmt.Sprintf("can be read: %d", len(e.directories)))
}

// Check reports whether the releaser has a session and may write records. Whether it may delete
// is not tried.
func (r *Releaser) Check(ctx context.Context) []source.Check {
	var found bool
	err := r.with(func(cl *client) (err error) {
		_, found, err = (reader{client: cl}).stat(ctx, r.opts.Records)
		return err
	})
	switch {
	case err != nil:
		return []source.Check{source.CheckFailed("records", r.explain(err), "no lock can be released until the releaser reaches a server")}
	case !found:
		return []source.Check{source.CheckFailed("records", r.opts.Records+" does not exist", "create it as `locksteward acl` prints, unless the releaser may create it")}
	}
	return []source.Check{source.CheckOK("records", r.opts.Records+" exists")}
}

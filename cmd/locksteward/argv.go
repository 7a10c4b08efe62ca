package main

import (
	"errors"
	"regexp"
	"slices"

	"github.com/spf13/cobra"
)

// urlPassword is a URL with a password: in front of the host, or as a parameter as
// PostgreSQL has it.
var urlPassword = regexp.MustCompile(`(?i)[a-z][a-z0-9+.-]*://(?:[^/?#\s@]*:[^/?#\s@]+@|[^\s]*[?&](?:ssl)?password=[^&\s])`)

// freeTextFlags are the flags whose value is a name of a key, a pattern or a person's own
// words: what looks like a URL there is none that anything connects to.
var freeTextFlags = []string{"holder", "key", "match", "purpose", "reason", "search", "subject"}

// refusePasswords refuses a URL with a password on the command line, in whatever
// flag: every process of the machine can read it there. It runs before anything
// else that a command does, and never shows the value.
func refusePasswords(check cobra.PositionalArgs) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		var errs []error
		for _, f := range visited(cmd.Flags().Visit) {
			if !slices.Contains(freeTextFlags, f.Name) && urlPassword.MatchString(f.Value.String()) {
				errs = append(errs, usagef("--%s: the URL contains a password, which every process on this machine can read; remove it and use %s", f.Name, passwordAlternative(f.Name)))
			}
		}
		if err := errors.Join(errs...); err != nil {
			return usagef("%w", err)
		}
		return check(cmd, args)
	}
}

// visited lists what a visitor of flags is called with.
func visited[F any](visit func(func(F))) []F {
	var out []F
	visit(func(f F) { out = append(out, f) })
	return out
}

// passwordAlternative is the way to give what a flag must not.
func passwordAlternative(flag string) string {
	switch flag {
	case "server":
		return "--server-password-file FILE or " + serverPasswordEnv
	case "agent":
		return "--token-file FILE or " + tokenEnv
	case "store":
		return "--config FILE with store.password_file in it, or PGPASSFILE"
	default:
		return "a file"
	}
}

// masked hides passwords of URLs in what the parser of the command line says.
func masked(err error) error {
	if urlPassword.MatchString(err.Error()) {
		return errors.New("an argument is a URL with a password, which every process on this machine can read; put it into a file")
	}
	return err
}

package oidclogin

import (
	"errors"
	"slices"
	"strings"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/internal/users"
)

// maxTeams bounds what a session keeps of a provider's groups.
const maxTeams = 100

// stringsOf reads a claim that is a text or a list of texts; whatever else is in it is
// left out.
func stringsOf(claim any) []string {
	switch c := claim.(type) {
	case string:
		return []string{c}
	case []any:
		var out []string
		for _, item := range c {
			if text, ok := item.(string); ok {
				out = append(out, text)
			}
		}
		return out
	default:
		return nil
	}
}

// isTrue reads email_verified, which some providers send as text.
func isTrue(claim any) bool { return claim == true || claim == "true" }

func rolesOf(names []string) []users.Role {
	var out []users.Role
	for _, name := range names {
		if role, err := users.ParseRole(name); err == nil {
			out = append(out, role)
		}
	}
	return out
}

func teamsOf(names []string) []string {
	var out []string
	for _, name := range names {
		if users.ValidTeam(name) && !slices.Contains(out, name) && len(out) < maxTeams {
			out = append(out, name)
		}
	}
	return out
}

// clip makes texts of the provider, or of the author of the address, fit to be
// shown.
func clip(words ...string) string {
	const most = 200
	text := strings.TrimSpace(strings.Join(words, " "))
	runes := []rune(strings.ToValidUTF8(text, "\ufffd"))
	if len(runes) > most {
		runes = append(runes[:most], '…')
	}
	return locksteward.DisplayKey(string(runes))
}

// clipError is an error of the library, which may hold a page that was sent in
// place of an answer.
func clipError(err error) error {
	if text := err.Error(); len(text) > 300 {
		return errors.New(clip(text))
	}
	return err
}

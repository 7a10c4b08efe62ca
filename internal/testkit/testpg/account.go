package testpg

import (
	"fmt"
	"os"
	"os/user"
	"strconv"
)

// account is a user that the server runs as; nil is who we are.
type account struct {
	name     string
	uid, gid uint32
}

// String names the user for people.
func (a *account) String() string {
	if a == nil {
		return "this user"
	}
	return "user " + a.name
}

// own gives a directory to the account.
func (a *account) own(dir string) error {
	if a == nil {
		return nil
	}
	return os.Chown(dir, int(a.uid), int(a.gid))
}

// unprivileged returns whom to run the server as: PostgreSQL refuses root.
func unprivileged() (*account, error) {
	if os.Geteuid() != 0 {
		return nil, nil //nolint:nilnil // Who we are.
	}
	var last error
	for _, name := range []string{"postgres", "nobody"} {
		u, err := user.Lookup(name)
		if err != nil {
			last = err
			continue
		}
		uid, err := strconv.ParseInt(u.Uid, 10, 64)
		if err != nil {
			return nil, fmt.Errorf("read uid of %q: %w", name, err)
		}
		gid, err := strconv.ParseInt(u.Gid, 10, 64)
		if err != nil {
			return nil, fmt.Errorf("read gid of %q: %w", name, err)
		}
		// macOS writes nobody as -2.
		return &account{name: name, uid: uint32(uid), gid: uint32(gid)}, nil
	}
	return nil, fmt.Errorf("find a user to run as, root is refused: %w", last)
}

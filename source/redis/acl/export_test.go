package acl

import (
	"fmt"
)

// Fact is one of the facts on commands.
type Fact struct {
	Name         string
	Major, Minor int
}

// Facts are all of them.
func Facts() (list []Fact) {
	for _, f := range facts {
		list = append(list, Fact{f.name, f.major, f.minor})
	}
	return list
}

// ParseSince reads the version of a command's documentation.
func ParseSince(text string) (v Version, err error) {
	_, err = fmt.Sscanf(text, "%d.%d", &v.Major, &v.Minor)
	return v, err
}

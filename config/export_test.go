package config

import (
	"reflect"

	"github.com/locksteward/locksteward/scanner"
	"github.com/locksteward/locksteward/source/redis"
)

// DefaultTarget returns a target with everything but its name and URL.
func DefaultTarget() Target {
	return Target{Scan: scanner.DefaultConfig(), RedisScan: redis.Config{}.WithDefaults()}
}

// Overlaid returns the defaults with what the environment sets, unchecked, and what is
// wrong with the variables.
func Overlaid() (Config, []error) {
	c := Default()
	d := newDecoder("x", nil)
	env := processEnviron()
	d.overlay(reflect.ValueOf(&c).Elem(), "", env)
	d.strangers(env)
	var out []error
	for _, p := range d.problems {
		out = append(out, p.err)
	}
	return c, out
}

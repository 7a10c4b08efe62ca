package config

import (
	"os"
	"reflect"
)

// Overlaid returns the defaults with what the environment sets, unchecked.
func Overlaid() Config {
	c := Default()
	d := newDecoder("x", nil)
	d.overlay(reflect.ValueOf(&c).Elem(), "", os.LookupEnv)
	return c
}

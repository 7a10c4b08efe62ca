package locksteward

import _ "embed" // for the example configuration

// ExampleConfig is config.example.yaml: every key at its default with a
// sentence. A test holds it equal to the defaults.
//
//go:embed config.example.yaml
var ExampleConfig string

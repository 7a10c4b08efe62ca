package main

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// Set at link time (Makefile); a plain `go build` fills them from the build
// info where it can.
var (
	version = ""
	commit  = ""
	date    = ""
)

type buildInfo struct {
	Version string `json:"version"`
	Commit  string `json:"commit"`
	Date    string `json:"date"`
	Go      string `json:"go"`
}

func thisBuild() buildInfo {
	b := buildInfo{Version: version, Commit: commit, Date: date, Go: runtime.Version()}
	if info, ok := debug.ReadBuildInfo(); ok {
		if b.Version == "" && info.Main.Version != "(devel)" {
			b.Version = info.Main.Version
		}
		for _, s := range info.Settings {
			switch {
			case s.Key == "vcs.revision" && b.Commit == "":
				b.Commit = s.Value
			case s.Key == "vcs.time" && b.Date == "":
				b.Date = s.Value
			}
		}
	}
	if b.Version == "" {
		b.Version = "devel"
	}
	return b
}

// String is a build in one line.
func (b buildInfo) String() string {
	text := b.Version
	if b.Commit != "" {
		text += " (" + b.Commit[:min(12, len(b.Commit))] + ", " + b.Date + ")"
	}
	return text + " " + b.Go
}

func versionCommand(p *program) *cobra.Command {
	var output outputFlag
	c := &cobra.Command{
		Use:   "version",
		Short: "Print the version of this program",
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			b := thisBuild()
			if output.data() {
				return output.encode(p.stdout, b)
			}
			_, err := fmt.Fprintln(p.stdout, "locksteward", b)
			return err
		},
	}
	output.register(c)
	return c
}

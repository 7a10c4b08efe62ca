package main

import (
	"runtime"
	"runtime/debug"
)

// Set at link time (Makefile); a plain `go build` fills them from the build
// info where it can.
var (
	version = ""
	commit  = ""
	date    = ""
)

type buildInfo struct{ Version, Commit, Date, Go string }

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

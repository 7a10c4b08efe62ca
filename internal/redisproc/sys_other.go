//go:build !unix

package redisproc

import (
	"errors"
	"os"
)

func lockFile(*os.File) error { return nil }

func sendStop(*os.Process) error { return errors.ErrUnsupported }

// Freeze is not possible here.
func Freeze(p *os.Process) error { return sendStop(p) }

func sendContinue(*os.Process) error { return errors.ErrUnsupported }

func sendTerminate(p *os.Process) error { return p.Kill() }

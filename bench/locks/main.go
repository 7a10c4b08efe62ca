package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/locksteward/locksteward/bench/results"
)

func main() {
	if len(os.Args) > 1 && os.Args[1] == waiterArg {
		os.Exit(waitUntilKilled(os.Args[2:], os.Stdin, os.Stdout))
	}
	if len(os.Args) > 1 && os.Args[1] == memberArg {
		os.Exit(wantOverAndOver(os.Args[2:], os.Stdin, os.Stdout, os.Stderr))
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	switch {
	case errors.Is(err, flag.ErrHelp):
		os.Exit(2)
	case err != nil:
		fmt.Fprintln(os.Stderr, "locks:", err)
		os.Exit(1)
	}
}

// run is the whole program: it measures what args ask for, writes the tables to
// stdout and what it is doing to stderr.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	s, err := parse(args, stderr)
	if err != nil {
		return err
	}
	r, err := measure(ctx, s, args, stderr)
	if ctx.Err() != nil {
		return fmt.Errorf("interrupted, nothing is written: %w", context.Cause(ctx))
	}
	if err != nil {
		return err
	}
	if err := writeText(stdout, r); err != nil {
		return fmt.Errorf("write tables: %w", err)
	}
	if err := writeFile(s.json, func(w io.Writer) error { return writeJSON(w, r) }); err != nil {
		return err
	}
	if s.markdown == "" {
		return nil
	}
	return results.Put(s.markdown, section(r))
}

// measure runs the sections one after another on one server.
func measure(ctx context.Context, s settings, args []string, stderr io.Writer) (_ *report, err error) {
	b, err := newBed(ctx, s, stderr)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, b.close()) }()
	r := &report{Settings: s}
	info, err := b.info(ctx, "server")
	if err != nil {
		return nil, err
	}
	r.Machine = results.Describe(info["redis_version"], strings.Join(append([]string{"go", "run", "./locks"}, args...), " "))
	if r.Machine.Load > float64(r.Machine.CPUs)/4 {
		b.say("the machine is busy (load %.2f): these numbers are no measurement", r.Machine.Load)
	}
	for _, section := range []struct {
		is  sections
		run func(context.Context, *bed) error
	}{
		{pairs, func(ctx context.Context, b *bed) (err error) { r.Pairs, err = runPairs(ctx, b); return err }},
		{costs, func(ctx context.Context, b *bed) (err error) { r.Costs, err = runCosts(ctx, b); return err }},
		{handoff, func(ctx context.Context, b *bed) (err error) { r.Handoff, err = runHandoff(ctx, b); return err }},
		{dead, func(ctx context.Context, b *bed) (err error) { r.Dead, err = runDead(ctx, b); return err }},
		{renewal, func(ctx context.Context, b *bed) (err error) { r.Renewal, err = runRenewal(ctx, b); return err }},
	} {
		if s.in&section.is == 0 {
			continue
		}
		if err := section.run(ctx, b); err != nil {
			return nil, fmt.Errorf("section %s: %w", section.is, err)
		}
	}
	r.Promises = judge(r)
	return r, nil
}

package main

import (
	"fmt"
	"path/filepath"
	"sync"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/locksteward/locksteward/internal/testkit/testcert"
)

// authorities are those of all scripts.
type authorities struct {
	mu  sync.Mutex
	all map[string]*testcert.CA // by the path of their file
}

func newAuthorities() *authorities { return &authorities{all: map[string]*testcert.CA{}} }

// command is `certs ca NAME`, which makes an authority in NAME.pem, `certs issue CA
// NAME`, which puts a certificate of it into NAME.pem and its key into NAME.key, and
// `certs trust FILE CA...`, which puts authorities into a file. All are put in place
// of files that are there, as one should.
func (a *authorities) command(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 || len(args) < 3 && args[0] != "ca" {
		ts.Fatalf("usage: certs ca NAME | certs issue CA NAME | certs trust FILE CA...")
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	t := scriptTB{ts: ts}
	named := func(name string) *testcert.CA {
		ca := a.all[ts.MkAbs(name+".pem")]
		if ca == nil {
			ts.Fatalf("certs: no authority %s", name)
		}
		return ca
	}
	switch args[0] {
	case "ca":
		ca := testcert.NewCA(t, args[1])
		a.all[ts.MkAbs(args[1]+".pem")] = ca
		testcert.Put(t, ts.MkAbs(args[1]+".pem"), ca.PEM)
	case "issue":
		p := named(args[1]).Issue(t, testcert.Leaf{Name: args[2]})
		testcert.Put(t, ts.MkAbs(args[2]+".pem"), p.Cert)
		testcert.Put(t, ts.MkAbs(args[2]+".key"), p.Key)
	case "trust":
		var bundle []byte
		for _, name := range args[2:] {
			bundle = append(bundle, named(name).PEM...)
		}
		testcert.Put(t, filepath.Clean(ts.MkAbs(args[1])), bundle)
	default:
		ts.Fatalf("certs: no %s", args[0])
	}
}

// scriptTB lets helpers of tests fail a script.
type scriptTB struct {
	testing.TB
	ts *testscript.TestScript
}

func (scriptTB) Helper() {}

func (s scriptTB) Fatal(args ...any) { s.ts.Fatalf("%s", fmt.Sprint(args...)) }

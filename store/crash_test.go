package store_test

import (
	"bufio"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/internal/testkit/testredis"
	"github.com/locksteward/locksteward/store"
)

// childEnv makes this test binary play an agent that is killed: "hang DSN" stops
// inside a transaction, "loop DSN" writes without end,
// or "send DSN" sends messages.
const childEnv = "LOCKSTEWARD_STORE_TEST_CHILD"

func child() {
	mode, dsn, _ := strings.Cut(os.Getenv(childEnv), " ")
	ctx := context.Background()
	s, err := store.Open(ctx, dsn)
	if err != nil {
		fmt.Println("error:", err)
		return
	}
	switch mode {
	case "hang":
		_, err = s.UpdateRequest(ctx, "r-crash", func(r *locksteward.Request) ([]locksteward.Entry, error) {
			r.State = locksteward.RequestExecuting
			fmt.Println("inside")
			select {}
		})
	case "send":
		for err == nil {
			var got []locksteward.Notification
			if got, err = s.Claim(ctx, "ops", claimOfChild, 1); err != nil || len(got) == 0 {
				continue
			}
			fmt.Println("sending", got[0].ID)
			if err = s.Delivered(ctx, got[0]); err == nil {
				fmt.Println("sent", got[0].ID)
			}
		}
	case "loop":
		s.Compose(func(w store.Written) []locksteward.Notification {
			return []locksteward.Notification{{ID: rand.Text(), Receiver: "ops", EventID: w.Entries[0].Outcome}}
		})
		for n := 0; err == nil; n++ {
			_, err = s.UpdateRequest(ctx, "r-crash", func(r *locksteward.Request) ([]locksteward.Entry, error) {
				r.Outcome = fmt.Sprint(n)
				return []locksteward.Entry{{Actor: "child", Action: "test.change", Subject: "r-crash", Outcome: r.Outcome}}, nil
			})
			if err == nil {
				fmt.Println("wrote", n) // n is committed from here on
			}
		}
	}
	fmt.Println("error:", err)
}

// startChild runs the test binary as child and returns its lines.
func startChild(t *testing.T, mode, dsn string) (*exec.Cmd, *bufio.Scanner) {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run=^$")
	cmd.Env = append(os.Environ(), childEnv+"="+mode+" "+dsn)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	return cmd, bufio.NewScanner(out)
}

func kill(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if _, ok := errors.AsType[*exec.ExitError](cmd.Wait()); !ok {
		t.Fatal("the child ended before it was killed")
	}
}

func TestKillInsideTransactionLeavesNothing(t *testing.T) {
	forEachStore(t, func(t *testing.T, p place) {
		s := p.open(t)
		create(t, s, newRequest("r-crash", "lock:a"))
		closeStore(t, s)

		cmd, lines := startChild(t, "hang", p.dsn)
		if !lines.Scan() || lines.Text() != "inside" {
			t.Fatalf("child said %q", lines.Text())
		}
		kill(t, cmd)

		s = p.open(t)
		got, err := s.GetRequest(t.Context(), "r-crash")
		if err != nil || got.State != locksteward.RequestPending {
			t.Fatalf("after the kill: state %q, %v; want pending", got.State, err)
		}
		verified(t, s, 1)
	})
}

// fault: 77
func TestKillWhileWritingKeepsChangesAndEntriesTogether(t *testing.T) {
	forEachStore(t, func(t *testing.T, p place) {
		s := p.open(t)
		create(t, s, newRequest("r-crash", "lock:a"))
		closeStore(t, s)

		for round := range 5 {
			cmd, lines := startChild(t, "loop", p.dsn)
			seen := -1
			for range 3 + 7*round {
				if !lines.Scan() {
					t.Fatal("child ended early")
				}
				if _, err := fmt.Sscanf(lines.Text(), "wrote %d", &seen); err != nil {
					t.Fatalf("child said %q", lines.Text())
				}
			}
			kill(t, cmd)
			for lines.Scan() {
				_, _ = fmt.Sscanf(lines.Text(), "wrote %d", &seen)
			}

			s := p.open(t)
			// A server may still be committing what it was sent before the kill; another
			// writer comes after that.
			if _, err := s.DigestKey(t.Context()); err != nil {
				t.Fatal(err)
			}
			got, err := s.GetRequest(t.Context(), "r-crash")
			if err != nil {
				t.Fatal(err)
			}
			entries, err := s.Entries(t.Context(), store.EntryQuery{Limit: 1})
			if err != nil || len(entries) != 1 || entries[0].Outcome != got.Outcome {
				t.Fatalf("request says %q, last entry %+v, %v: the two must be one transaction", got.Outcome, entries, err)
			}
			var last int
			if _, err := fmt.Sscan(got.Outcome, &last); err != nil || last < seen {
				t.Fatalf("write %d was reported, %q is stored", seen, got.Outcome)
			}
			n, err := s.Verify(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			messages, err := s.Notifications(t.Context(), store.NotificationQuery{Limit: 1 << 20})
			if err != nil || int64(len(messages)) != n-1 || messages[0].EventID != got.Outcome {
				t.Fatalf("%d messages of %d changes, %v", len(messages), n-1, err)
			}
			closeStore(t, s)
		}
	})
}

// claimOfChild is how long what a sender took is nobody else's.
const claimOfChild = 300 * time.Millisecond

// A sender that is killed loses nothing: what it had claimed is claimed again, and
// what it had reported sent is not.
// fault: 77
func TestKillWhileSending(t *testing.T) {
	forEachStore(t, func(t *testing.T, p place) {
		s := p.open(t)
		const messages = 60
		for n := range messages {
			enqueue(t, s, message(fmt.Sprintf("m%02d", n), fmt.Sprint("f", n%7)))
		}
		closeStore(t, s)
		sent := map[string]bool{}
		hear := func(line string) {
			if id, ok := strings.CutPrefix(line, "sent "); ok {
				if sent[id] {
					t.Errorf("%s was sent twice", id)
				}
				sent[id] = true
			}
		}
		for range 3 {
			cmd, lines := startChild(t, "send", p.dsn)
			for range 15 {
				if !lines.Scan() {
					t.Fatal("child ended early")
				}
				hear(lines.Text())
			}
			kill(t, cmd)
			for lines.Scan() {
				hear(lines.Text())
			}
		}
		s = p.open(t)
		testredis.Eventually(t, within, func() bool {
			for _, m := range claim(t, s, "ops", messages) {
				if err := s.Delivered(t.Context(), m); err != nil {
					t.Fatal(err)
				}
				if sent[m.ID] {
					t.Errorf("%s is claimed after it was sent", m.ID)
				}
			}
			backlog, err := s.Backlogs(t.Context())
			return err == nil && len(backlog) == 0
		}, "messages are left")
		all, err := s.Notifications(t.Context(), store.NotificationQuery{State: locksteward.NotificationDelivered, Limit: messages + 1})
		if err != nil || len(all) != messages {
			t.Errorf("%d messages delivered, %v; want %d", len(all), err, messages)
		}
	})
}

func newRequest(id, key string) locksteward.Request {
	at := time.Date(2026, 3, 4, 5, 6, 7, 8000, time.UTC)
	return locksteward.Request{
		ID: id, State: locksteward.RequestPending,
		Evidence: locksteward.Evidence{
			Target: "orders", DB: 3, Key: key, Class: "orders", Library: "token", Type: "string",
			Identity: locksteward.IdentityStrong, TokenDigest: "hmac-sha256:00", ExpireAt: locksteward.NoExpireAt, Count: 1,
			Holder:  locksteward.Holder{App: "billing", Host: "h1", PID: 7, Session: "s", Instance: "i"},
			ClaimID: "c1", Fence: 42, Findings: []string{"hold/too-long", "ttl/none"}, At: at,
		},
		EvidenceHash: "e1", Requester: "ana", Reason: "stuck", CreatedAt: at, ExpiresAt: at.Add(time.Hour),
	}
}

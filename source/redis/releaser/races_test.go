package releaser_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"flag"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/internal/testkit/testredis"
	"github.com/locksteward/locksteward/source/redis/formats"
)

// races is how many races TestRacesOfEveryLibrary runs; `make chaos` asks for
// 100,000.
var races = flag.Int("release.races", 20_000, "adversarial races against the scripts of all libraries")

// raceBudget bounds a run that was not asked for more than usual; on two quiet
// cores it takes a tenth of that.
const raceBudget = 3 * time.Minute

// specimen is one lock of a format, as its fixture has it, on a key of the
// test's own: a place where a library's lock stands.
type specimen struct {
	name     string
	sample   formats.Sample
	identity locksteward.Identity
}

// specimens are the locks of the fixtures that can be released, by format, and
// the formats that never can be.
func specimens(t *testing.T) (list []specimen, never []string) {
	t.Helper()
	for _, d := range formats.All() {
		if formats.WhyNever(d.Name) != "" {
			never = append(never, d.Name)
			continue
		}
		before := len(list)
		paths, err := filepath.Glob(filepath.Join("..", "formats", "testdata", d.Name, "*.json"))
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range paths {
			s, ok := fixtureSample(t, path)
			if !ok || formats.Recognise(s).Format != d.Name {
				continue
			}
			if _, err := d.Release(s, formats.Release{RequestID: "r", ExpireAt: locksteward.NoExpireAt}); err != nil {
				continue // of several holders, say
			}
			found := specimen{d.Name + "/" + filepath.Base(path), s, formats.Recognise(s).Identity}
			if found.in("0:0:0").name == "" {
				continue // known by a name that leaves no place for another
			}
			list = append(list, found)
		}
		if len(list) == before {
			t.Errorf("%s: no fixture can be raced", d.Name)
		}
	}
	return list, never
}

func fixtureSample(t *testing.T, path string) (formats.Sample, bool) {
	t.Helper()
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var f struct {
		Key, Type, Value string
		KeyB64           string `json:"key_b64"`
		ValueB64         string `json:"value_b64"`
		TTLMs            int64  `json:"ttl_ms"`
		Fields           map[string]string
		Members          []struct {
			Name    string
			NameB64 string `json:"name_b64"`
			Score   float64
		}
		Beside map[string]struct {
			Size  int64
			Value string
		}
		Size     *int64
		TooLarge bool `json:"too_large"`
	}
	if err := json.Unmarshal(raw, &f); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	s := formats.Sample{
		Key: plain(t, f.Key, f.KeyB64), Type: f.Type, TTL: time.Duration(f.TTLMs) * time.Millisecond,
		Value: []byte(plain(t, f.Value, f.ValueB64)), Fields: f.Fields,
	}
	for _, m := range f.Members {
		s.Members = append(s.Members, formats.Member{Name: plain(t, m.Name, m.NameB64), Score: m.Score})
	}
	for key, b := range f.Beside {
		if s.Auxiliary == nil {
			s.Auxiliary = map[string]formats.Auxiliary{}
		}
		s.Auxiliary[key] = formats.Auxiliary{Size: b.Size, Value: []byte(b.Value)}
	}
	if f.TTLMs < 0 {
		s.TTL = locksteward.NoExpiry
	}
	s.Size = int64(len(s.Value) + len(s.Fields) + len(s.Members))
	return s, !f.TooLarge && (f.Size == nil || *f.Size == s.Size)
}

func plain(t *testing.T, text, b64 string) string {
	t.Helper()
	if b64 == "" {
		return text
	}
	raw, err := base64.StdEncoding.DecodeString(b64)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

// write puts the lock under its key, with an expiry that no other hold of the
// run has; ghost keeps which hold it is, and which renewal, for the test alone.
func (s specimen) write(ctx context.Context, p redis.Pipeliner, expireAt int64, owner string) {
	key := s.sample.Key
	p.Del(ctx, key)
	switch s.sample.Type {
	case "string":
		p.Set(ctx, key, string(s.sample.Value)+owner, 0)
	case "hash":
		args := []any{}
		for field, value := range s.sample.Fields {
			args = append(args, field, value)
		}
		if owner != "" {
			args = append(args, "other"+owner, "1")
		}
		p.HSet(ctx, key, args...)
	case "set":
		for _, m := range s.sample.Members {
			p.SAdd(ctx, key, m.Name+owner)
		}
	default:
		for _, m := range s.sample.Members {
			p.ZAdd(ctx, key, redis.Z{Member: m.Name + owner, Score: m.Score})
		}
	}
	if s.sample.TTL != locksteward.NoExpiry {
		p.Do(ctx, "PEXPIREAT", key, expireAt)
	}
	p.HIncrBy(ctx, ghost(key), "hold", 1)
	p.HSet(ctx, ghost(key), "renewal", 0)
}

func ghost(key string) string { return "ghost:" + key }

// beside puts what stands beside the lock, by which it is known.
func (s specimen) auxiliary(ctx context.Context, p redis.Pipeliner) {
	for _, ask := range formats.AuxiliaryReads(s.sample) {
		b, ok := s.sample.Auxiliary[ask.Key]
		if !ok {
			continue
		}
		p.Del(ctx, ask.Key)
		for i := range b.Size {
			switch ask.Type {
			case "list":
				p.RPush(ctx, ask.Key, fmt.Sprintf("w%d", i))
			case "hash":
				p.HSet(ctx, ask.Key, fmt.Sprintf("f%d", i), 1)
			case "zset":
				p.ZAdd(ctx, ask.Key, redis.Z{Member: fmt.Sprintf("m%d", i), Score: 1})
			}
		}
		if ask.Type == "string" {
			p.Set(ctx, ask.Key, b.Value, 0)
		}
	}
}

// raced is one race under way.
type raced struct {
	specimen
	command formats.Command
	hold    string // the hold and renewal that were seen
}

// tally of a run.
type raceTally struct {
	mu       sync.Mutex
	ran      map[locksteward.Identity]int
	outcomes map[formats.Outcome]int
	wrong    []string
	residual int // holds of identity none that were not the one that was seen
	twice    []string
}

// TestRacesOfEveryLibrary: an adversary renews, releases, takes again as the same
// or another owner, while two agents carry out the same request. The ghost of a
// lock is read in the same transaction as the script, so that the test knows
// exactly what was deleted.
// fault: 67, 70
func TestRacesOfEveryLibrary(t *testing.T) {
	t.Parallel()
	list, never := specimens(t)
	srv := testredis.Start(t)
	tally := &raceTally{ran: map[locksteward.Identity]int{}, outcomes: map[formats.Outcome]int{}}
	var left atomic.Int64
	left.Store(int64(*races))
	deadline := time.Now().Add(raceBudget)
	if *races > 20_000 {
		deadline = time.Now().Add(time.Hour)
	}
	began := time.Now()
	var wg sync.WaitGroup
	for worker := range 2 {
		c := &raceClients{t: t, setup: srv.Client(t), adversary: srv.Client(t), agents: [2]*redis.Client{srv.Client(t), srv.Client(t)}}
		wg.Go(func() {
			for n := 0; left.Load() > 0 && time.Now().Before(deadline) && !t.Failed(); n++ {
				batch := c.batch(list, fmt.Sprintf("%d:%d", worker, n))
				left.Add(-int64(len(batch)))
				c.race(batch, tally)
			}
		})
	}
	wg.Wait()
	ran := 0
	for _, n := range tally.ran {
		ran += n
	}
	for _, w := range slices.Concat(tally.wrong, tally.twice) {
		t.Error(w)
	}
	if ran < *races {
		t.Errorf("%d races in %s, want %d", ran, time.Since(began).Round(time.Second), *races)
	}
	for _, o := range []formats.Outcome{formats.OutcomeReleased, formats.OutcomeChanged, formats.OutcomeAlreadyGone, formats.OutcomeRepeated} {
		if tally.outcomes[o] < ran/100 {
			t.Errorf("%s happened %d times in %d races: the races are none", o, tally.outcomes[o], ran)
		}
	}
	t.Logf("%d races over %d locks of %d libraries in %s: %v by identity, outcomes of two agents %v", ran, len(list), len(formats.All())-len(never),
		time.Since(began).Round(time.Millisecond), tally.ran, tally.outcomes)
	t.Logf("wrong deletions of strong and lineage: %d; double executions: %d; identity none, where a person confirms: %d of %d ended another hold than was seen",
		len(tally.wrong), len(tally.twice), tally.residual, tally.ran[locksteward.IdentityNone])
	t.Logf("never released, refused with a reason: %s", strings.Join(never, ", "))
}

// raceClients are the connections of one worker.
type raceClients struct {
	t                *testing.T
	setup, adversary *redis.Client
	agents           [2]*redis.Client
	clock            int64
	scripts          sync.Map
	rng              *rand.Rand
}

// sha is the digest of a script that the server has.
func (c *raceClients) sha(script string) string {
	if sha, ok := c.scripts.Load(script); ok {
		return sha.(string)
	}
	sha, err := c.setup.ScriptLoad(c.t.Context(), script).Result()
	if err != nil {
		c.t.Error(err)
	}
	c.scripts.Store(script, sha)
	return sha
}

// expiry is one that no other hold of this worker has.
func (c *raceClients) expiry() int64 {
	c.clock++
	return time.Now().UnixMilli() + 600_000 + c.clock%400_000
}

// batch takes a lock of each specimen and freezes a request about it.
func (c *raceClients) batch(list []specimen, run string) []raced {
	ctx := c.t.Context()
	if c.rng == nil {
		c.rng = rand.New(rand.NewPCG(uint64(len(run)), uint64(time.Now().UnixNano())))
	}
	here := make([]specimen, len(list))
	for i, s := range list {
		here[i] = s.in(fmt.Sprintf("%s:%d", run, i)) // fixtures may have one key
	}
	if _, err := c.setup.Pipelined(ctx, func(p redis.Pipeliner) error {
		for _, s := range here {
			s.auxiliary(ctx, p)
			s.write(ctx, p, c.expiry(), "")
		}
		return nil
	}); err != nil {
		c.t.Error(err)
		return nil
	}
	expiries := make([]*redis.Cmd, len(list))
	ghosts := make([]*redis.SliceCmd, len(list))
	if _, err := c.setup.Pipelined(ctx, func(p redis.Pipeliner) error {
		for i, s := range here {
			expiries[i], ghosts[i] = p.Eval(ctx, testredis.ExpiryScript, []string{s.sample.Key}), p.HMGet(ctx, ghost(s.sample.Key), "hold", "renewal")
		}
		return nil
	}); err != nil {
		c.t.Error(err)
		return nil
	}
	var out []raced
	for i, s := range here {
		at, _ := expiries[i].Int64()
		d, _ := formats.Get(formats.Recognise(s.sample).Format)
		command, err := d.Release(s.sample, formats.Release{RequestID: "r-" + run, ExpireAt: at, Undo: time.Duration(i%2) * time.Minute})
		if err != nil {
			c.t.Errorf("%s: %v", s.name, err)
			continue
		}
		out = append(out, raced{s, command, fmt.Sprint(ghosts[i].Val())})
	}
	return out
}

var hexRun = regexp.MustCompile(`[0-9a-f]{32}`)

// in is the specimen on a key of its own, where its format does not know it by
// its whole name.
func (s specimen) in(run string) specimen {
	other := s.sample
	keys := []string{s.sample.Key + ":" + run, run + ":" + s.sample.Key}
	if rest, ok := strings.CutPrefix(s.sample.Key, "{"); ok {
		keys = append(keys, "{"+run+":"+rest)
	}
	for _, suffix := range []string{":LOCKED", ":GRABBED", ":lock", "-lock", ".readers", ".writer"} {
		if name, ok := strings.CutSuffix(s.sample.Key, suffix); ok {
			keys = append(keys, name+run+suffix)
		}
	}
	if i := strings.LastIndexAny(s.sample.Key, ":/|_-."); i > 0 { // in the middle of the name
		keys = append(keys, s.sample.Key[:i+1]+run+s.sample.Key[i+1:], s.sample.Key[:i]+run+s.sample.Key[i:])
	}
	if at := hexRun.FindStringIndex(s.sample.Key); at != nil { // a digest
		h := fnv.New32a()
		_, _ = h.Write([]byte(run))
		keys = append(keys, s.sample.Key[:at[1]-8]+fmt.Sprintf("%08x", h.Sum32())+s.sample.Key[at[1]:])
	}
	for _, key := range keys {
		other.Key = key
		other.Auxiliary = nil
		for was, b := range s.sample.Auxiliary {
			if other.Auxiliary == nil {
				other.Auxiliary = map[string]formats.Auxiliary{}
			}
			other.Auxiliary[strings.Replace(was, s.sample.Key, key, 1)] = b
		}
		if got := formats.Recognise(other); got.Format == formats.Recognise(s.sample).Format && got.Identity == s.identity {
			return specimen{s.name, other, s.identity}
		}
	}
	return specimen{}
}

// race lets the adversary and two agents loose on the locks of a batch.
func (c *raceClients) race(batch []raced, tally *raceTally) {
	ctx := c.t.Context()
	var wg sync.WaitGroup
	seeds := [3]uint64{c.rng.Uint64(), c.rng.Uint64(), c.rng.Uint64()}
	wg.Go(func() {
		order := rand.New(rand.NewPCG(1, seeds[2]))
		for chunk := range slices.Chunk(order.Perm(len(batch)), 4) {
			var again []int
			_, err := c.adversary.TxPipelined(ctx, func(p redis.Pipeliner) error {
				for _, i := range chunk {
					if c.harass(ctx, p, order, batch[i]) {
						again = append(again, i)
					}
				}
				return nil
			})
			if err == nil && len(again) > 0 {
				_, err = c.adversary.TxPipelined(ctx, func(p redis.Pipeliner) error {
					for _, i := range again {
						batch[i].write(ctx, p, anyExpiry(order), "z")
					}
					return nil
				})
			}
			if err != nil {
				c.t.Error(err)
				return
			}
		}
	})
	var answers [2][]answer
	for a := range c.agents {
		answers[a] = make([]answer, len(batch))
		wg.Go(func() {
			order := rand.New(rand.NewPCG(uint64(a), seeds[a]))
			for chunk := range slices.Chunk(order.Perm(len(batch)), 4) {
				c.execute(ctx, c.agents[a], batch, chunk, answers[a])
			}
		})
	}
	wg.Wait()
	c.judge(batch, answers, tally)
	if _, err := c.setup.Pipelined(ctx, func(p redis.Pipeliner) error {
		for _, r := range batch {
			p.Del(ctx, append([]string{ghost(r.sample.Key)}, r.command.Keys...)...)
		}
		return nil
	}); err != nil {
		c.t.Error(err)
	}
}

// harass is what one holder does meanwhile; true if it takes the lock again in a
// step of its own.
func (c *raceClients) harass(ctx context.Context, p redis.Pipeliner, rng *rand.Rand, r raced) (again bool) {
	key := r.sample.Key
	switch rng.IntN(6) {
	case 0: // it goes on working
		p.Ping(ctx)
	case 1: // it renews
		p.Ping(ctx)
		if r.sample.TTL != locksteward.NoExpiry {
			p.Do(ctx, "PEXPIREAT", key, anyExpiry(rng))
			p.HIncrBy(ctx, ghost(key), "renewal", 1)
		}
	case 2: // it releases
		p.Del(ctx, key)
	case 3: // another takes the lock
		r.write(ctx, p, anyExpiry(rng), "x")
	case 4: // the same owner takes it again; where that is a fresh token, another
		owner := ""
		if r.identity == locksteward.IdentityStrong {
			owner = "y"
		}
		r.write(ctx, p, anyExpiry(rng), owner)
	case 5: // it releases, and takes it again in another step
		p.Del(ctx, key)
		return true
	}
	return false
}

// anyExpiry is none that a request was about: those are within 17 minutes.
func anyExpiry(rng *rand.Rand) int64 {
	return time.Now().UnixMilli() + 1_100_000 + rng.Int64N(1_000_000)
}

// answer is what one agent answered, and which hold stood there at that moment.
type answer struct {
	reply formats.Reply
	hold  string
	err   error
}

func (c *raceClients) execute(ctx context.Context, agent *redis.Client, batch []raced, chunk []int, into []answer) {
	ghosts, evals := make([]*redis.SliceCmd, len(chunk)), make([]*redis.Cmd, len(chunk))
	_, err := agent.TxPipelined(ctx, func(p redis.Pipeliner) error {
		for n, i := range chunk {
			r := batch[i]
			ghosts[n] = p.HMGet(ctx, ghost(r.sample.Key), "hold", "renewal")
			// The script itself is there already: its text is 8 KB.
			evals[n] = p.EvalSha(ctx, c.sha(r.command.Script), r.command.Keys, r.command.Args...)
		}
		return nil
	})
	if err != nil {
		c.t.Errorf("%s: %v", batch[chunk[0]].name, err)
	}
	for n, i := range chunk {
		reply, err := formats.ParseReply(evals[n].Val())
		into[i] = answer{reply, fmt.Sprint(ghosts[n].Val()), err}
	}
}

func (c *raceClients) judge(batch []raced, answers [2][]answer, tally *raceTally) {
	tally.mu.Lock()
	defer tally.mu.Unlock()
	for i, r := range batch {
		tally.ran[r.identity]++
		released := 0
		for a := range answers {
			got := answers[a][i]
			if got.err != nil {
				c.t.Errorf("%s: %v", r.name, got.err)
				return
			}
			tally.outcomes[got.reply.Outcome]++
			if got.reply.Outcome != formats.OutcomeReleased {
				continue
			}
			released++
			switch {
			case got.hold == r.hold:
			case r.identity == locksteward.IdentityNone:
				tally.residual++
			default:
				tally.wrong = append(tally.wrong, fmt.Sprintf("%s (%s): saw hold %s, ended %s", r.name, r.identity, r.hold, got.hold))
			}
		}
		if released > 1 {
			tally.twice = append(tally.twice, r.name+": one request was carried out twice")
		}
	}
}

// TestBlindDeleteFailsTheRaces: the same races without a comparison end wrong
// holds, so those above can fail.
func TestBlindDeleteFailsTheRaces(t *testing.T) {
	t.Parallel()
	list, _ := specimens(t)
	srv := testredis.Start(t)
	tally := &raceTally{ran: map[locksteward.Identity]int{}, outcomes: map[formats.Outcome]int{}}
	c := &raceClients{t: t, setup: srv.Client(t), adversary: srv.Client(t), agents: [2]*redis.Client{srv.Client(t), srv.Client(t)}}
	for n := range 10 {
		batch := c.batch(list, fmt.Sprintf("blind:%d", n))
		for i := range batch {
			batch[i].command.Script = "if redis.call('DEL', KEYS[1]) == 1 then return {1, 0, 1} end return {0, 0, 0}"
		}
		c.race(batch, tally)
	}
	if len(tally.wrong) == 0 || len(tally.twice) == 0 {
		t.Errorf("a blind DEL ended %d wrong holds and executed %d requests twice: the races are none", len(tally.wrong), len(tally.twice))
	}
	t.Logf("blind DEL: %d wrong, %d twice", len(tally.wrong), len(tally.twice))
}

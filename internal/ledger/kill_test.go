package ledger_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/slipway/slipway/internal/ledger"
	"github.com/slipway/slipway/internal/ledger/ledgertest"
)

// member is a process that holds a member, given as JSON. It writes events and
// says on stdout which of them were acknowledged, until it is killed or its stdin
// is closed.
func member(options string) int {
	var o ledger.Options
	if err := json.Unmarshal([]byte(options), &o); err != nil {
		fmt.Println("error", err)
		return 1
	}
	l, err := ledger.Open(context.Background(), o)
	if err != nil {
		fmt.Println("error", err)
		return 1
	}
	ctx, stop := context.WithCancel(context.Background())
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin) // ends when the test does
		stop()
	}()
	fmt.Println("ready")
	for i := 0; ctx.Err() == nil; i++ {
		text := fmt.Sprintf("%d-%d", os.Getpid(), i)
		if err := l.Note(ctx, text, ledger.Event{Kind: "kill", Text: text}); err == nil {
			fmt.Println("acknowledged", text)
		}
	}
	if err := l.Close(); err != nil {
		return 1
	}
	return 0
}

// books holds what was acknowledged, by whom.
type books struct {
	mu    sync.Mutex
	acked map[string][]string
}

func (b *books) add(who, text string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.acked[who] = append(b.acked[who], text)
}

func (b *books) count(who string) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.acked[who])
}

func (b *books) copy() map[string][]string {
	b.mu.Lock()
	defer b.mu.Unlock()
	out := map[string][]string{}
	for who, texts := range b.acked {
		out[who] = slices.Clone(texts)
	}
	return out
}

// await waits until somebody has so many more acknowledgements, and tells how long.
func (b *books) await(t *testing.T, who string, more int) time.Duration {
	t.Helper()
	start, want := time.Now(), b.count(who)+more
	for b.count(who) < want {
		if time.Since(start) > 40*time.Second {
			t.Fatalf("%s: %d of %d writes acknowledged", who, b.count(who), want)
		}
		time.Sleep(5 * time.Millisecond)
	}
	return time.Since(start)
}

// process is a member in a process of its own.
type process struct {
	cmd  *exec.Cmd
	done chan struct{}
}

// spawn starts a member and waits until it is ready.
func spawn(t *testing.T, who string, o ledger.Options, b *books) *process {
	t.Helper()
	options, err := json.Marshal(map[string]any{"Dir": o.Dir, "Address": o.Address, "Join": o.Join, "Key": o.Key})
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "SLIPWAY_TEST_MEMBER="+string(options))
	cmd.Stderr = os.Stderr
	if _, err := cmd.StdinPipe(); err != nil { // closed when this process ends, however it ends
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	p := &process{cmd: cmd, done: make(chan struct{})}
	t.Cleanup(p.kill)
	ready := make(chan string, 1)
	go p.read(out, who, ready, b)
	select {
	case said := <-ready:
		if said != "ready" {
			t.Fatalf("%s: %s", who, said)
		}
	case <-time.After(time.Minute):
		t.Fatalf("%s is not ready", who)
	}
	return p
}

func (p *process) read(out io.Reader, who string, ready chan<- string, b *books) {
	defer close(p.done)
	lines := bufio.NewScanner(out)
	if lines.Scan() {
		ready <- lines.Text()
	}
	for lines.Scan() {
		if text, found := strings.CutPrefix(lines.Text(), "acknowledged "); found {
			b.add(who, text)
		}
	}
}

// kill is SIGKILL: no handover, no goodbye. All that it had said is read.
func (p *process) kill() {
	if p.cmd.ProcessState != nil {
		return
	}
	_ = p.cmd.Process.Kill()
	<-p.done
	_ = p.cmd.Wait()
}

// The leader is killed while all three write: what was acknowledged stays, the
// others go on, the killed one comes back. Two of three killed: the last one says
// so in time, and goes on when there is a majority again.
func TestKilledLeader(t *testing.T) {
	b := &books{acked: map[string][]string{}}
	first := ledger.Options{Dir: t.TempDir(), Address: ledgertest.FreeAddress(t)}
	joins := func() ledger.Options {
		return ledger.Options{Dir: t.TempDir(), Address: ledgertest.FreeAddress(t), Join: []string{first.Address}, Key: filepath.Join(first.Dir, ledger.KeyName)}
	}
	leader := spawn(t, "leader", first, b)
	second := joins()
	other := spawn(t, "other", second, b)
	l := open(t, joins())
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var writer sync.WaitGroup
	writer.Go(func() {
		for i := 0; ctx.Err() == nil; i++ {
			text := fmt.Sprint("here-", i)
			if err := l.Note(ctx, text, ledger.Event{Kind: "kill", Text: text}); err == nil {
				b.add("here", text)
			}
		}
	})
	isLeader(t, l, first.Address)
	for _, who := range []string{"leader", "other", "here"} {
		b.await(t, who, 10)
	}

	leader.kill()
	t.Logf("first write after the leader's death: %v", b.await(t, "here", 1).Round(10*time.Millisecond))
	b.await(t, "other", 5)
	leader = spawn(t, "leader", first, b)
	b.await(t, "leader", 3)

	stop()
	writer.Wait()
	leader.kill()
	other.kill()
	short, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	start := time.Now()
	if err := l.Note(short, "alone", ledger.Event{Kind: "kill", Text: "alone"}); !errors.Is(err, ledger.ErrNoLeader) || time.Since(start) > 20*time.Second {
		t.Errorf("alone of three: %v after %v", err, time.Since(start))
	}
	other = spawn(t, "other", second, b)
	if err := l.Note(t.Context(), "not alone", ledger.Event{Kind: "kill", Text: "not alone"}); err != nil {
		t.Error(err)
	}
	other.kill()
	spawn(t, "other", second, b)
	everythingOnce(t, l, b)
}

func isLeader(t *testing.T, l *ledger.Ledger, address string) {
	t.Helper()
	members, err := l.Members(t.Context())
	if err != nil || len(members) != 3 {
		t.Fatalf("%+v, %v", members, err)
	}
	for _, m := range members {
		if m.Leader != (m.Address == address) || m.Role != "voter" {
			t.Fatalf("%+v", members)
		}
	}
}

// everythingOnce: what was acknowledged is there, once. What was not may be there.
func everythingOnce(t *testing.T, l *ledger.Ledger, b *books) {
	t.Helper()
	acked := b.copy() // before the log is read: what comes later may be missing there
	count := map[string]int{}
	for cursor := int64(0); ; {
		page, err := l.Events(t.Context(), cursor, 1000)
		if err != nil {
			t.Fatal(err)
		}
		if len(page) == 0 {
			break
		}
		for _, e := range page {
			count[e.Text]++
			cursor = e.Seq
		}
	}
	total := 0
	for who, texts := range acked {
		for _, text := range texts {
			total++
			if count[text] != 1 {
				t.Errorf("%s of %s was acknowledged and is there %d times", text, who, count[text])
			}
		}
	}
	for text, n := range count {
		if n > 1 {
			t.Errorf("%s is there %d times", text, n)
		}
	}
	t.Logf("%d writes acknowledged, %d there", total, len(count))
}

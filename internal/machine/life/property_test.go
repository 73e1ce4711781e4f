package life

import (
	"errors"
	"fmt"
	"math/rand"
	"strings"
	"testing"
	"time"

	"github.com/slipway/slipway/internal/cluster"
	"github.com/slipway/slipway/internal/digest"
	"github.com/slipway/slipway/internal/machine"
)

// box is a machine as it stands on the shelf. Box 3 has the MAC address of box 0,
// box 4 the serial number of box 1: what must not be, and is.
type box struct {
	sight   Sighting
	secrets []string // all it was ever given
}

func boxes() []*box {
	mk := func(uuid, serial string, macs ...cluster.MAC) *box {
		return &box{sight: Sighting{MACs: macs, Identity: machine.Identity{UUID: uuid, Serial: serial}}}
	}
	return []*box{
		mk("uuid-0", "SER-0", "52:54:00:00:01:01", "52:54:00:00:01:02"),
		mk("uuid-1", "SER-N2", "52:54:00:00:02:01"),
		mk("03000200-0400-0500-0006-000700080009", "None", "52:54:00:00:03:01"),
		mk("uuid-3", "", "52:54:00:00:01:01"),
		mk("uuid-4", "SER-N2", "02:00:00:00:00:04"),
		mk("uuid-5", "None", "02:00:00:00:00:05"),
	}
}

// world is a fleet under random events, with its own much simpler books.
type world struct {
	*shelf
	rand   *rand.Rand
	boxes  []*box
	policy Policy
	count  int
	steps  []string

	armed    map[string]int         // by node: armings since its last success
	consumed map[digest.Digest]bool // tokens of receipts that were taken

	installed, failed, refused int
}

func newWorld(t *testing.T, seed int64) *world {
	return &world{
		shelf: newShelf(t), rand: rand.New(rand.NewSource(seed)), boxes: boxes(), policy: allowed(),
		armed: map[string]int{}, consumed: map[digest.Digest]bool{},
	}
}

// apply takes an event and looks at everything that must hold whatever the event.
func (w *world) apply(r Record, e Event) (Record, Outcome, error) {
	before := dump(w.t, r)
	got, out, err := Apply(r, e, w.now)
	if dump(w.t, r) != before {
		w.t.Fatalf("%T changed the record it was given", e)
	}
	var refusal *machine.Refusal
	if err != nil && !errors.As(err, &refusal) {
		w.t.Fatalf("%T: not a refusal: %v", e, err)
	}
	if refusal != nil {
		w.sentence(refusal.Reason)
		w.refused++
	}
	for _, n := range out.Notes {
		w.sentence(n)
	}
	if got.State == StateFailed && r.State != StateFailed {
		w.failed++
	}
	w.store(Recognition{Record: got})
	return got, out, err
}

func (w *world) sentence(s string) {
	if len(s) < 10 || strings.HasSuffix(s, ".") || strings.Contains(s, "\n") || strings.Contains(s, "%!") || strings.Contains(s, "  ") {
		w.t.Fatalf("no sentence: %q", s)
	}
}

func (w *world) note(format string, args ...any) {
	w.steps = append(w.steps, fmt.Sprintf(format, args...))
}

func (w *world) step() {
	w.now = w.now.Add(time.Duration(w.rand.Intn(90)) * time.Second)
	switch w.rand.Intn(20) {
	case 0:
		w.now = w.now.Add(time.Duration(w.rand.Intn(120)) * time.Minute)
	case 1:
		w.policy.Status = []cluster.Status{cluster.StatusActive, cluster.StatusActive, cluster.StatusDesignOnly}[w.rand.Intn(3)]
	case 2, 3, 4:
		w.arm()
	case 5:
		if len(w.fleet) > 0 {
			r := w.fleet[w.rand.Intn(len(w.fleet))]
			w.note("disarm %s", r.Key)
			w.apply(r, Disarm{"by chance"})
		}
	case 6, 7, 8, 9, 10, 11:
		w.boot([]int{0, 0, 0, 1, 1, 1, 2, 2, 2, 3, 4, 5}[w.rand.Intn(12)])
	case 12:
		w.report(w.boxes[w.rand.Intn(len(w.boxes))])
	default:
		w.installer(w.boxes[w.rand.Intn(len(w.boxes))])
	}
	w.invariants()
}

func (w *world) arm() {
	node := nodes()[w.rand.Intn(3)]
	w.count++
	var found []Record
	for _, r := range w.fleet {
		if r.Node == node.Name {
			found = append(found, r)
		}
	}
	if len(found) == 0 {
		r, err := Expect(node)
		if err != nil {
			w.t.Fatal(err)
		}
		for _, old := range w.fleet {
			if old.Key == r.Key {
				return
			}
		}
		found = []Record{r}
	}
	got, err := Review(append([]Record{found[0]}, w.fleet...), found[0].Key, nodes(), w.now)
	if err != nil {
		w.t.Fatal(err)
	}
	w.store(got)
	e := Arm{ID: fmt.Sprint(w.count), Status: w.policy.Status, Order: order(node.Name, w.now.Add(time.Duration(1+w.rand.Intn(100))*time.Minute)), MaxTries: 1 + w.rand.Intn(3), Replace: w.rand.Intn(2) == 0}
	w.note("arm %s (%s), %s", node.Name, found[0].Key, e.Status)
	_, _, err = w.apply(got.Record, e)
	if err == nil && w.policy.Status != cluster.StatusActive {
		w.t.Fatal("armed under a design-only profile")
	}
	if err == nil {
		w.armed[node.Name]++
	}
}

func (w *world) sighted(s Sighting) Record {
	got, err := Recognise(w.fleet, s, nodes(), w.now)
	if err != nil {
		w.t.Fatal(err)
	}
	for _, n := range got.Notes {
		w.sentence(n)
	}
	w.store(got)
	return got.Record
}

func (w *world) report(b *box) {
	s := b.sight
	s.Complete = true
	w.note("report of %s", s.Identity.UUID)
	w.sighted(s)
}

func (w *world) boot(i int) {
	b := w.boxes[i]
	s := b.sight
	s.MACs = s.MACs[w.rand.Intn(len(s.MACs)):][:1]
	if w.rand.Intn(4) == 0 {
		s.Identity = machine.Identity{}
	}
	r := w.sighted(s)
	w.count++
	id := secret(w.count)
	decided := DecideBoot(r, w.policy, w.now)
	got, out, err := w.apply(r, Boot{Token: HashToken(id), Policy: w.policy})
	w.note("boot of %s: %s (%s)", s.Identity.UUID, out.Decision.Action, out.Decision.Reason)
	if err != nil {
		w.t.Fatal(err)
	}
	w.sentence(out.Decision.Reason)
	if expired := r.Grant != nil && r.Grant.End == "" && !r.Grant.Live(w.now); !expired && decided != out.Decision {
		w.t.Fatalf("decided %+v, gave %+v", decided, out.Decision)
	}
	if out.Decision.Action == machine.ActionInstall {
		w.mayInstall(got)
		b.secrets = append(b.secrets, id)
		if w.rand.Intn(2) == 0 {
			w.whole(b, id)
		}
	}
}

// whole is an install that nothing goes wrong with.
func (w *world) whole(b *box, id string) {
	token := HashToken(id)
	for _, e := range []Event{Claim{token}, TakeSeed{Token: token}, Finish{token, receipt("", id)}} {
		r, found := w.holder(token)
		if !found {
			w.t.Fatal("nobody has the token that was just handed out")
		}
		if f, ok := e.(Finish); ok {
			f.Receipt.Node = r.Node
			e = f
		}
		got, _, err := w.apply(r, e)
		w.note("%T of %s: %v", e, b.sight.Identity.UUID, err)
		w.receipted(token, e, r, got, err)
		if err != nil {
			w.t.Fatalf("%T: %v", e, err)
		}
		w.invariants()
	}
}

// mayInstall checks that a machine that gets the installer may be imaged.
func (w *world) mayInstall(r Record) {
	switch {
	case w.policy.Status != cluster.StatusActive:
		w.t.Fatal("an installer under a design-only profile")
	case w.armed[r.Node] == 0:
		w.t.Fatalf("an installer for %s, which was not armed since it was installed", r.Node)
	case !r.Grant.Live(w.now) || r.Refused != "":
		w.t.Fatalf("an installer without a right: %+v", r)
	case r.Grant.Tries > r.Grant.MaxTries:
		w.t.Fatalf("try %d of %d", r.Grant.Tries, r.Grant.MaxTries)
	}
}

// installer does one thing that an installer does, with one of the secrets that
// the box was ever given; mostly the newest.
func (w *world) installer(b *box) {
	if len(b.secrets) == 0 {
		return
	}
	id := b.secrets[len(b.secrets)-1]
	if w.rand.Intn(4) == 0 {
		id = b.secrets[w.rand.Intn(len(b.secrets))]
	}
	token := HashToken(id)
	r, found := w.holder(token)
	if !found {
		return
	}
	var e Event
	switch w.rand.Intn(5) {
	case 0, 1:
		e = Claim{token}
	case 2:
		e = TakeSeed{Token: token}
	case 3:
		e = Advance{token, machine.Progress{Stage: machine.StageWrite}}
	default:
		rec := receipt(r.Node, id)
		if w.rand.Intn(3) == 0 {
			rec.Error, rec.Written = "it broke", w.rand.Intn(2) == 0
		}
		e = Finish{token, rec}
	}
	got, _, err := w.apply(r, e)
	w.note("%T of %s: %v", e, b.sight.Identity.UUID, err)
	w.receipted(token, e, r, got, err)
}

func (w *world) receipted(token digest.Digest, e Event, before, after Record, err error) {
	_, finish := e.(Finish)
	switch {
	case w.consumed[token] && !finish && err == nil:
		w.t.Fatalf("a consumed ticket works for %T", e)
	case finish && w.consumed[token] && err == nil && dump(w.t, before) != dump(w.t, after):
		w.t.Fatal("a second receipt changed something")
	case finish && err == nil:
		if !w.consumed[token] && after.State == StateInstalled {
			w.armed[after.Node] = 0
			w.installed++
		}
		w.consumed[token] = true
	}
}

func (w *world) holder(token digest.Digest) (Record, bool) {
	for _, r := range w.fleet {
		if r.Grant != nil && r.Grant.Token == token {
			return r, true
		}
		for _, s := range r.Spent {
			if s.Token == token {
				return r, true
			}
		}
	}
	return Record{}, false
}

// invariants hold in every world at every time.
func (w *world) invariants() {
	valid, keys := map[string]int{}, map[machine.Key]bool{}
	for _, r := range w.fleet {
		if keys[r.Key] {
			w.t.Fatalf("two machines are called %s", r.Key)
		}
		keys[r.Key] = true
		alive := r.Grant != nil && r.Grant.End == ""
		if alive {
			valid[r.Grant.Order.Node]++
			if r.Grant.Tries > r.Grant.MaxTries || r.Grant.Order.Node != r.Node {
				w.t.Fatalf("%+v", r.Grant)
			}
		}
		if alive != (r.State == StateArmed || r.State == StateImaging) {
			w.t.Fatalf("state %s with a grant that is alive: %v", r.State, alive)
		}
		if (r.State == StateInstalled) && r.Installed == nil || r.State == StateFailed && r.Failure == "" || r.Node == "" && r.Why == "" {
			w.t.Fatalf("%+v", r)
		}
		if alive && w.consumed[r.Grant.Token] {
			w.t.Fatal("a consumed token is alive again")
		}
	}
	for node, n := range valid {
		if n > 1 {
			w.t.Fatalf("%d tickets for %s", n, node)
		}
	}
}

// Random events, among them machines that share an address or a serial number,
// power cuts, lost answers, profiles that change and clocks that run on.
func TestWhateverHappens(t *testing.T) {
	runs, length := 120, 150
	installed, failed, refused := 0, 0, 0
	for seed := range int64(runs) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			w := newWorld(t, seed)
			defer func() {
				if t.Failed() {
					t.Logf("steps:\n%s", strings.Join(w.steps[max(0, len(w.steps)-25):], "\n"))
				}
			}()
			for range length {
				w.step()
			}
			installed, failed, refused = installed+w.installed, failed+w.failed, refused+w.refused
		})
	}
	t.Logf("%d installs, %d failures, %d refusals", installed, failed, refused)
	if installed < runs || failed < runs/2 || refused < runs {
		t.Error("the worlds are too quiet to show anything")
	}
}

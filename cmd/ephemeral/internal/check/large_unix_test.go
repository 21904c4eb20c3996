//go:build unix

package check

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/ephemeralgo/ephemeral/cmd/ephemeral/internal/flow"
)

// part is a package of the large program. The number of the package is @, and that of the one
// below it is $. It has services like those of a program.
const large = 200 // packages

const part = `package part@

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"example.com/large/part0"
	below "example.com/large/part$"
	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/signals"
)

const Prefix = "part@"

var Saved, errGone = signals.NewKind[Item0](Prefix+".saved"), errors.New("gone")

var _ = below.Prefix

func subscribe(sink *signals.Sink, pattern string) { sink.Subscribe(pattern, func(signals.Signal) {}) }

func name(noun, verb string) string { return strings.Join([]string{Prefix, noun, verb}, ".") }
`

const service = `
type Item# struct {
	ID, Text string
	Tags     []string
	Due      time.Time
}

type Service# struct {
	sink  *signals.Sink
	items map[string]Item#
	work  *core.Coordinator[Item#]
}

func New#(sink *signals.Sink) (*Service#, error) {
	s := &Service#{sink: sink, items: map[string]Item#{}}
	var err error
	s.work, err = core.NewCoordinator(s.run, core.Options{
		Name: "service#", Sink: sink, CancelOn: name("service#", "closed"), DeferOn: Prefix + ".service#.busy",
		Lanes: []core.Lane{{Name: "hot#"}, {Name: "cold#", DeferOn: name("service#", "saved")}},
	})
	subscribe(sink, Prefix+".service#.*")
	return s, err
}

func (s *Service#) Name() string { return name("service#", "named") }

func (s *Service#) Handle(w http.ResponseWriter, r *http.Request) {
	item := Item#{ID: r.PathValue("id"), Text: r.FormValue("text"), Tags: strings.Fields(r.FormValue("tags"))}
	lane := "hot#"
	if len(item.Tags) > 3 {
		lane = "cold#"
	}
	if _, err := s.work.Lane(lane).Enqueue(r.Context(), item); err != nil {
		http.Error(w, fmt.Sprintf("service#: %v", err), http.StatusServiceUnavailable)
	}
}

func (s *Service#) run(ctx context.Context, item Item#) error {
	op := core.OperationFrom(ctx)
	for i, tag := range item.Tags {
		if strings.HasPrefix(tag, "x") {
			return fmt.Errorf("tag %d of %s: %w", i, item.ID, errGone)
		}
		op.Raise(Prefix + ".service#." + tag)
	}
	op.Raise(name("service#", "saved"))
	op.Raise(name("service#", "named"))
	op.RaiseKey(name("service#", "busy"), item.ID)
	s.items[item.ID] = item
	return nil
}

func (s *Service#) Close(ctx context.Context) error {
	s.sink.Raise(name("service#", "closed"))
	return s.work.Drain(ctx)
}
`

const part0 = `package part0

import "context"

const Prefix = "part0"

type Server interface {
	Name() string
	Close(context.Context) error
}

func Must[S Server](s S, err error) Server {
	if err != nil {
		panic(err)
	}
	return s
}
`

const mainFile = `package main

import (
	"context"

	"github.com/ephemeralgo/ephemeral/core/signals"

	"example.com/large/part0"
%s)

func main() {
	sink := signals.NewSink(signals.SinkOptions{})
	var all []part0.Server
%s	for _, s := range all {
		sink.Has(s.Name())
		defer s.Close(context.Background())
	}
	sink.Has("part7.service3.svaed")
}
`

// A program of 200 packages with six coordinators each is checked in less than 6 seconds of one
// processor, if the build cache has what it needs.
func TestLargeProgram(t *testing.T) {
	if os.Getenv("EPHEMERAL_REHEARSAL") == "" {
		t.Skip("it writes and compiles 200 packages: set EPHEMERAL_REHEARSAL")
	}
	core, err := filepath.Abs("../../../../core")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	write := func(name, text string) {
		name = filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(name), 0o700), os.WriteFile(name, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	const library = "github.com/ephemeralgo/ephemeral/core"
	write("go.mod", "module example.com/large\n\ngo 1.26.0\n\nrequire "+library+" v0.0.0\n\nreplace "+library+" => "+core+"\n")
	write("part0/part.go", part0)
	imports, starts := "", ""
	for i := 1; i < large; i++ {
		text := strings.NewReplacer("@", fmt.Sprint(i), "$", fmt.Sprint(i/2)).Replace(part)
		all := ""
		for j := range 6 {
			text += strings.ReplaceAll(service, "#", fmt.Sprint(j))
			all += fmt.Sprintf("part0.Must(New%d(sink)), ", j)
		}
		text += "\nfunc Start(sink *signals.Sink) []part0.Server { return []part0.Server{" + all + "} }\n"
		imports += fmt.Sprintf("\t\"example.com/large/part%d\"\n", i)
		starts += fmt.Sprintf("\tall = append(all, part%d.Start(sink)...)\n", i)
		write(fmt.Sprintf("part%d/part.go", i), text)
	}
	write("main.go", fmt.Sprintf(mainFile, imports, starts))
	t.Setenv("GOWORK", "off")
	var times [3]time.Duration
	for i := range times {
		before := used(t)
		w, err := flow.Load(t.Context(), dir, false, "./...")
		if err != nil {
			t.Fatal(err)
		}
		if found := sure(append(Programs(w), Calls(w)...)); len(found) != 1 || found[0].Nearest != "part7.service3.saved" {
			t.Fatal(found)
		}
		times[i] = used(t) - before
	}
	t.Log("processor time, the first with the compiler:", times)
	if least := slices.Min(times[:]); least > 6*time.Second {
		t.Errorf("took %v", least)
	}
}

// used is the processor time of the test and of the commands that it has run.
func used(t *testing.T) (total time.Duration) {
	for _, who := range []int{syscall.RUSAGE_SELF, syscall.RUSAGE_CHILDREN} {
		var u syscall.Rusage
		if err := syscall.Getrusage(who, &u); err != nil {
			t.Fatal(err)
		}
		total += time.Duration(u.Utime.Nano() + u.Stime.Nano())
	}
	return total
}

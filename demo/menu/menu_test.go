package menu

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/coretest"
	"github.com/ephemeralgo/ephemeral/core/signals"
	"github.com/ephemeralgo/ephemeral/demo/scenario"
)

// driver gives messages to a model, and remembers the last command.
type driver struct {
	model
	cmd tea.Cmd
}

func drive(run func(context.Context, *scenario.Screen) error) *driver {
	return &driver{model: newModel(context.Background(), []scenario.Scenario{
		{Name: "first", Title: "The first"}, {Name: "second", Title: "The second", Run: run}, {Name: "third", Title: "The third"},
	})}
}

func (d *driver) send(msg tea.Msg) {
	next, cmd := d.Update(msg)
	d.model, d.cmd = next.(model), cmd
}

var special = map[string]tea.Key{
	"enter": {Code: tea.KeyEnter}, "esc": {Code: tea.KeyEscape}, "up": {Code: tea.KeyUp}, "down": {Code: tea.KeyDown},
	"backspace": {Code: tea.KeyBackspace}, "ctrl+c": {Code: 'c', Mod: tea.ModCtrl},
}

func (d *driver) press(keys ...string) {
	for _, k := range keys {
		key, ok := special[k]
		if !ok {
			key = tea.Key{Text: k, Code: []rune(k)[0]}
		}
		d.send(tea.KeyPressMsg(key))
	}
}

func (d *driver) screen() string { return ansi.Strip(d.View().Content) }

func (d *driver) expect(t *testing.T, texts ...string) {
	t.Helper()
	for _, text := range texts {
		if !strings.Contains(d.screen(), text) {
			t.Errorf("want %q on the screen:\n%s", text, d.screen())
		}
	}
}

func raised(names ...string) []signals.Signal {
	var facts []signals.Signal
	for i, name := range names {
		facts = append(facts, signals.Signal{Name: name, Key: "k", Seq: uint64(i + 1)})
	}
	return facts
}

func ends(cmd tea.Cmd, want tea.Msg) bool { return cmd != nil && cmd() == want }

func TestFromKeyToKey(t *testing.T) {
	d := drive(nil)
	d.press("up", "down", "enter")
	if d.run == nil || d.cursor != 1 {
		t.Fatalf("scenario %d, running: %v", d.cursor, d.run != nil)
	}
	d.send(frame{lines: []string{"  0.10s  working"}, signals: raised("order.placed")})
	d.expect(t, "  0.10s  working", "000001 order.placed k", "ctrl+c end the scenario")
	d.press("q", "x", "enter") // have no effect while a scenario runs
	d.send(frame{lines: []string{"=> \x1b[31mworked\x1b[2J\twell"}, ended: true})
	d.expect(t, "=> worked well", "press any key")
	d.press("q")
	if d.expect(t, "q quit", "The third"); strings.Contains(d.screen(), "worked") {
		t.Errorf("the output stays:\n%s", d.screen())
	}

	d.press("enter")
	d.send(frame{ended: true, err: fmt.Errorf("it was %w", errors.ErrUnsupported)})
	d.expect(t, "failed: it was unsupported operation")
	d.press("x", "down", "down", "down")
	if d.press("q"); d.cursor != 2 || !ends(d.cmd, tea.QuitMsg{}) {
		t.Error("q does not leave the menu after an error")
	}
}

func TestInterrupt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := drive(nil)
		if d.press("ctrl+c"); !ends(d.cmd, tea.InterruptMsg{}) {
			t.Error("Ctrl-C does not leave an idle menu")
		}
		ctx := make(chan context.Context, 1)
		d = drive(func(c context.Context, _ *scenario.Screen) error {
			ctx <- c
			<-c.Done()
			time.Sleep(time.Second) // the scenario finishes its work
			return nil
		})
		d.press("down", "enter")
		go d.cmd().(tea.BatchMsg)[0]()
		running, run := <-ctx, d.run
		d.press("/", "ctrl+c")
		if synctest.Wait(); d.cmd != nil || running.Err() == nil {
			t.Error("the first Ctrl-C must cancel the scenario, and nothing else")
		}
		if d.press("ctrl+c"); !ends(d.cmd, tea.InterruptMsg{}) {
			t.Error("the second Ctrl-C does not leave the menu")
		}
		<-run.ended
	})
}

// Filter and sampling work before, while and after a scenario runs.
func TestFilter(t *testing.T) {
	d := drive(nil)
	d.press("/", "b", ".", "x", "backspace", "*", "enter", "enter")
	d.send(frame{signals: raised("a.one", "b.two", "b.three", "c.four")})
	d.expect(t, "signals b.*, 1 of 1", "received 4  shown 2", "filtered 2  skipped 0", "b.three")
	d.press("/", "backspace", "backspace", "?", "esc") // changes nothing
	d.press("+", "+", "-", "-", "+")
	d.expect(t, "signals b.*, 1 of 2")
	d.send(tea.WindowSizeMsg{Width: 150, Height: 30})
	d.expect(t, "[00:00:00.000] 000002 b.two k")
	d.send(frame{ended: true})
	d.press("/", "backspace", "backspace", "backspace")
	for _, r := range "*.three" {
		d.press(string(r))
	}
	d.press("enter")
	if d.expect(t, "signals *.three", "b.three"); strings.Contains(d.screen(), "b.two") {
		t.Errorf("what does not match stays:\n%s", d.screen())
	}
}

// Whatever messages come, the screen has the size of the terminal, and each signal is in one
// counter.
func TestAnyMessages(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	texts := []string{"short", strings.Repeat("wide 界 ", 40), "\x1b[31mred\x1b[2J", "a\tb\r\nc", "", "\xff\x00"}
	keys := []string{"enter", "esc", "up", "down", "backspace", "j", "k", "/", "+", "-", "*", "界", "x"}
	d, seq, steps := drive(nil), uint64(0), 1000
	if os.Getenv("EPHEMERAL_LONG") != "" {
		steps = 10_000
	}
	for range steps {
		switch n := random.IntN(12); {
		case n == 0:
			d.send(tea.WindowSizeMsg{Width: random.IntN(200), Height: random.IntN(60)})
		case n < 5 && d.run != nil:
			f := frame{ended: n == 1, err: errors.New(texts[random.IntN(len(texts))])}
			for range random.IntN(20) {
				seq += uint64(1 + random.IntN(2))
				text := texts[random.IntN(len(texts))]
				f.lines = append(f.lines, text)
				f.signals = append(f.signals, signals.Signal{Name: text, Key: text, Seq: seq})
			}
			d.send(f)
		default:
			d.press(keys[random.IntN(len(keys))])
		}
		if d.run != nil && d.signals.received == 0 {
			seq = 0
		}
		w := d.signals
		if w.received != w.shown+w.filtered+w.skipped || w.every < 1 || len(w.signals) > maxLines || len(d.output) > maxLines+10 {
			t.Fatalf("%d lines, %+v", len(d.output), w)
		}
		rows := strings.Split(d.View().Content, "\n")
		if len(rows) != max(1, d.height) {
			t.Fatalf("%d rows of %d", len(rows), d.height)
		}
		for _, row := range rows {
			if n := ansi.StringWidth(row); n > max(1, d.width) {
				t.Fatalf("%d columns of %d: %q", n, d.width, row)
			}
		}
	}
}

func TestColours(t *testing.T) {
	for name, want := range map[string]string{
		"gateway.error": red, "disk.critical": red, "order.failed": red, "error.rate": red, "memory.warning": yellow, "window.resized": blue,
		"rate.limited": magenta, "request.complete": green, "durable.succeeded": green, "cache.debug": grey, "order.placed": "",
	} {
		if got := colour(name); got != want {
			t.Errorf("%s: got %q, want %q", name, got, want)
		}
	}
	d := drive(nil)
	d.press("enter")
	if d.send(frame{signals: raised("order.failed")}); !strings.Contains(d.View().Content, red+"000001") {
		t.Errorf("no red in %q", d.View().Content)
	}
}

// The menu looks ten times a second, and does not subscribe to signals.
func TestLooks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := drive(func(_ context.Context, s *scenario.Screen) error {
			for i := range 1000 {
				s.Sink.RaiseKey("order.placed", fmt.Sprint(i))
				if time.Sleep(time.Millisecond); s.Sink.Stats().Handlers > 0 {
					t.Error("the menu has subscribed")
				}
			}
			s.Printf("that is %s", "all")
			return nil
		})
		d.press("down", "enter")
		both := d.cmd().(tea.BatchMsg)
		go both[0]()
		looks := 1
		for d.send(both[1]()); d.run != nil; looks++ {
			d.send(d.cmd())
		}
		if d.expect(t, "received 1000  shown 1000", "1.00s  that is all"); looks > 11 {
			t.Errorf("%d looks in a second", looks)
		}
	})
}

func TestPlay(t *testing.T) {
	screen := scenario.New(new(strings.Builder))
	err := Play(t.Context(), scenario.Scenario{Name: "x", Run: func(context.Context, *scenario.Screen) error { panic("oh") }}, screen)
	if p, ok := errors.AsType[*core.PanicError](err); !ok || !strings.Contains(strings.Join(result(err), "\n"), "menu_test.go") {
		t.Errorf("got %v with %v", err, p)
	}
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Second, errors.ErrUnsupported)
		defer cancel()
		ended := false
		err := Play(ctx, scenario.Scenario{Name: "x", Run: func(ctx context.Context, _ *scenario.Screen) error {
			<-ctx.Done()
			time.Sleep(time.Second)
			ended = true
			return nil
		}}, screen)
		coretest.Check(t, errors.Is(err, errors.ErrUnsupported) && ended, "got %v, ended: %v", err, ended)
	})
}

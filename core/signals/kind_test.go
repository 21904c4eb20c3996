package signals_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/coretest"
	"github.com/ephemeralgo/ephemeral/core/signals"
)

type file struct {
	Path string
	Size int
}

var fileSaved = signals.NewKind[file]("file.saved")

func TestKind(t *testing.T) {
	s := signals.NewSink(signals.SinkOptions{})
	checkEqual(t, "Name", fileSaved.Name(), "file.saved")
	var heard []string
	cancel := fileSaved.Subscribe(s, func(sig signals.Signal, f file) { heard = append(heard, sig.Key+" "+f.Path) })
	if !fileSaved.Raise(s, "k", file{"a.txt", 5}) {
		t.Fatal("not raised")
	}
	cancel()
	fileSaved.Raise(s, "k2", file{"b.txt", 6})
	wantNames(t, "heard", heard, "k a.txt")

	// To everybody else it is an ordinary signal.
	checkEqual(t, "seen by its name", words(s.Has("file.*"), s.Count("file.saved"), s.Monitor("file.saved", time.Hour).Count()), "true 2 2")
	checkEqual(t, "payload", newest(t, s, "file.saved").Payload(), any(file{"b.txt", 6}))

	// From compares name and type.
	s.Raise("file.saved")
	signals.NewKind[string]("file.saved").Raise(s, "", "text")
	signals.NewKind[file]("file.deleted").Raise(s, "", file{"c.txt", 7})
	var got []string
	for sig, f := range fileSaved.Sense(s, signals.Query{}) {
		got = append(got, fmt.Sprint(sig.Key, f))
	}
	wantNames(t, "sensed", got, "k{a.txt 5}", "k2{b.txt 6}")
	for range fileSaved.Sense(s, signals.Query{}) {
		break // leaving early is fine
	}
	for sig := range fileSaved.Sense(s, signals.Query{Key: "k2"}) {
		checkEqual(t, "Key", sig.Key, "k2")
	}
	if _, ok := fileSaved.From(newest(t, s, "file.deleted")); ok {
		t.Error("a signal of another name counts as one of this kind")
	}
}

func TestKindOnViews(t *testing.T) {
	s := signals.NewSink(signals.SinkOptions{})
	s.Raise("cause")
	cause := newest(t, s, "cause")
	fileSaved.Raise(s.Because(cause), "", file{"caused", 1})
	if got, want := newest(t, s, "file.saved").Path(), []string{"cause", "file.saved"}; !slices.Equal(got, want) {
		t.Errorf("path: got %q, want %q", got, want)
	}

	fileSaved.Raise(s.Scoped("sink", "c", "atom"), "", file{"scoped", 2})
	scoped := newest(t, s, "sink.c.atom.file.saved")
	if f, ok := fileSaved.From(scoped); !ok || f.Path != "scoped" {
		t.Errorf("from a scoped signal: got %v, %v", f, ok)
	}
	var paths []string
	for _, f := range fileSaved.Sense(s, signals.Query{Pattern: "*file.saved"}) {
		paths = append(paths, f.Path)
	}
	wantNames(t, "sensed", paths, "caused", "scoped")

	signals.NewKind[file]("tempfile.saved").Raise(s, "", file{"other", 3})
	if _, ok := fileSaved.From(newest(t, s, "tempfile.saved")); ok {
		t.Error("took the end of a part for the name")
	}

	c := core.Must(core.NewCoordinator(func(ctx context.Context, f file) error {
		fileSaved.Raise(core.OperationFrom(ctx), "key", f)
		return nil
	}, core.Options{}))
	defer c.Close()
	checkError(t, "Do", c.Do(t.Context(), file{"op", 4}), nil)
	for sig, f := range fileSaved.Sense(c, signals.Query{}) {
		checkEqual(t, "file", words(f.Path, sig.Key, sig.Operation != 0), "op key true")
	}
	coretest.Check(t, !fileSaved.Raise(core.OperationFrom(t.Context()), "", file{}), "raised on no operation")
}

func TestNewKindRefusesPatterns(t *testing.T) {
	for _, name := range []string{"", "*", "a.*", "a?", "a,b", " a", "a ", "\ta", "a\u00a0"} {
		wantPanic(t, "signals: NewKind", func() { signals.NewKind[int](name) })
	}
	signals.NewKind[int]("a b:c.é")
}

func TestFamily(t *testing.T) {
	s := signals.NewSink(signals.SinkOptions{})
	moved := signals.NewFamily[file]("file.*, dir.*")
	var heard []string
	cancel := moved.Subscribe(s, func(sig signals.Signal, f file) { heard = append(heard, sig.Name+" "+f.Path) })
	moved.Named("file.copied").Raise(s, "", file{Path: "a"})
	moved.Named("dir.copied").Raise(s, "", file{Path: "b"})
	signals.NewKind[file]("disk.copied").Raise(s, "", file{Path: "c"}) // another name
	signals.NewKind[int]("file.copied").Raise(s, "", 1)                // another type
	wantNames(t, "heard", heard, "file.copied a", "dir.copied b")
	cancel()
	var sensed []string
	for sig := range moved.Sense(s, signals.Query{Pattern: "*.copied"}) {
		sensed = append(sensed, sig.Name)
	}
	coretest.Check(t, slices.Equal(sensed, []string{"file.copied", "dir.copied"}), "sensed %v", sensed)
	checkEqual(t, "Pattern", moved.Pattern(), "file.*, dir.*")
	checkPanics(t, func() { moved.Named("disk.copied") })
	checkPanics(t, func() { moved.Named("file.*") })
	checkPanics(t, func() { signals.NewFamily[file](" , ") })
	checkPanics(t, func() { moved.Subscribe(s, nil) })
}

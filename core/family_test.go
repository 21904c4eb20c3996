package core_test

import (
	"slices"
	"testing"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/coretest"
)

func TestFamily(t *testing.T) {
	s := core.NewSink(core.SinkOptions{})
	moved := core.NewFamily[file]("file.*, dir.*")
	var heard []string
	cancel := moved.Subscribe(s, func(sig core.Signal, f file) { heard = append(heard, sig.Name+" "+f.Path) })
	moved.Named("file.copied").Raise(s, "", file{Path: "a"})
	moved.Named("dir.copied").Raise(s, "", file{Path: "b"})
	core.NewKind[file]("disk.copied").Raise(s, "", file{Path: "c"}) // another name
	core.NewKind[int]("file.copied").Raise(s, "", 1)                // another type
	wantNames(t, "heard", heard, "file.copied a", "dir.copied b")
	cancel()
	var sensed []string
	for sig := range moved.Sense(s, core.Query{Pattern: "*.copied"}) {
		sensed = append(sensed, sig.Name)
	}
	coretest.Check(t, slices.Equal(sensed, []string{"file.copied", "dir.copied"}), "sensed %v", sensed)
	checkEqual(t, "Pattern", moved.Pattern(), "file.*, dir.*")
	checkPanics(t, func() { moved.Named("disk.copied") })
	checkPanics(t, func() { moved.Named("file.*") })
	checkPanics(t, func() { core.NewFamily[file](" , ") })
	checkPanics(t, func() { moved.Subscribe(s, nil) })
}

package persistentwindow_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/ephemeralgo/ephemeral/atoms/sqlitewriter"
	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/patterns/persistentwindow"
)

type File struct{ Size int }

var FileSaved = core.NewKind[File]("file.saved")

func Example() {
	ctx, dir := context.Background(), filepath.Join(os.TempDir(), "ephemeral-window")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	w, err := sqlitewriter.Open(ctx, filepath.Join(dir, "app.db"), sqlitewriter.Options{})
	if err != nil {
		panic(err)
	}
	defer w.Close()
	for _, start := range []string{"first", "second"} { // the program, and the program after a restart
		sink := core.NewSink(core.SinkOptions{MaxAge: 10 * time.Minute})
		window, err := persistentwindow.Open(ctx, w, sink, persistentwindow.Options{
			FlushInterval: 30 * time.Second,
			MaxAge:        10 * time.Minute,
			Kinds:         []persistentwindow.Payload{persistentwindow.JSON(FileSaved)},
		})
		if err != nil {
			panic(err)
		}
		for s, file := range FileSaved.Sense(sink, core.Query{}) {
			fmt.Println(start, "start:", s.Key, file.Size)
		}
		FileSaved.Raise(sink, "a.txt", File{42})
		if err := window.Close(); err != nil { // flushes
			panic(err)
		}
	}
	// Output: second start: a.txt 42
}

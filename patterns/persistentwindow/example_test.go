package persistentwindow_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/ephemeralgo/ephemeral/atoms/sqlitewriter"
	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/signals"
	"github.com/ephemeralgo/ephemeral/patterns/persistentwindow"
)

type File struct{ Size int }

var FileSaved = signals.NewKind[File]("file.saved")

func Example() {
	ctx, dir := context.Background(), core.Must(os.MkdirTemp("", "ephemeral"))
	defer os.RemoveAll(dir)
	w := core.Must(sqlitewriter.Open(ctx, filepath.Join(dir, "app.db"), sqlitewriter.Options{}))
	defer w.Close()
	for _, start := range []string{"first", "second"} { // the program, and the program after a restart
		sink := signals.NewSink(signals.SinkOptions{MaxAge: 10 * time.Minute})
		window := core.Must(persistentwindow.Open(ctx, w, sink, persistentwindow.Options{
			FlushInterval: 30 * time.Second,
			MaxAge:        10 * time.Minute,
			Kinds:         []persistentwindow.Payload{persistentwindow.JSON(FileSaved)},
		}))
		for s, file := range FileSaved.Sense(sink, signals.Query{}) {
			_, restored := persistentwindow.OriginOf(s)
			fmt.Println(start, "start:", s.Key, file.Size, restored)
		}
		FileSaved.Raise(sink, "a.txt", File{42})
		err := window.Close() // flushes
		fmt.Println(start, "start:", window.Stats().Written, "written", err)
	}
	// Output:
	// first start: 1 written <nil>
	// second start: a.txt 42 true
	// second start: 1 written <nil>
}

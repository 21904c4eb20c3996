package logging_test

import (
	"context"
	"fmt"
	"io/fs"
	"log/slog"
	"os"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/signals"
	"github.com/ephemeralgo/ephemeral/patterns/logging"
)

// A logger writes records. Warnings and errors among them become signals as well.
func ExampleNewHandler() {
	sink := signals.NewSink(signals.SinkOptions{})
	base := slog.NewTextHandler(os.Stdout, &slog.HandlerOptions{ReplaceAttr: withoutTime})
	raised := logging.NewHandler(sink, logging.HandlerOptions{Level: slog.LevelWarn})
	logger := slog.New(slog.NewMultiHandler(base, raised))
	orders := logger.With("category", "orders")

	orders.Info("order received", "id", 7)
	orders.Error("order store failed", "event", "DbFailure", "err", &fs.PathError{Op: "open", Path: "db", Err: fs.ErrNotExist})

	print := func(s signals.Signal, r logging.Record) {
		fmt.Println(s.Name)
		fmt.Println(s.Key, "|", r.Message, "|", r.Attrs)
	}
	for s, r := range logging.Log.Sense(sink, signals.Query{Pattern: "log.error.*"}) {
		print(s, r)
	}
	// Output:
	// level=INFO msg="order received" category=orders id=7
	// level=ERROR msg="order store failed" category=orders event=DbFailure err="open db: file does not exist"
	// log.error.orders.dbfailure:patherror
	// DbFailure | order store failed | [category=orders event=DbFailure err=open db: file does not exist]
}

// An error that is logged becomes an incident.
func ExampleHandler() {
	sink := signals.NewSink(signals.SinkOptions{})
	base := slog.NewTextHandler(os.Stdout, &slog.HandlerOptions{ReplaceAttr: withoutTime})
	logger := slog.New(slog.NewMultiHandler(base, logging.NewHandler(sink, logging.HandlerOptions{})))

	jobs := core.Must(core.NewDispatcher(core.Options{}))
	defer jobs.Close()
	jobs.Handle("log.error.*", func(_ context.Context, s signals.Signal) error {
		fmt.Println("escalating", s.Name, "for", s.Key)
		sink.Because(s).RaiseKey("incident.created", s.Key)
		return nil
	})
	jobs.Handle("incident.created", func(_ context.Context, s signals.Signal) error {
		fmt.Println("incident for", s.Key)
		return nil
	})
	defer sink.Subscribe("*", jobs.Dispatch)()

	logger.With("category", "orders").Error("order store failed", "event", "DbFailure")
	fmt.Println(jobs.WaitIdle(context.Background()))
	// Output:
	// level=ERROR msg="order store failed" category=orders event=DbFailure
	// escalating log.error.orders.dbfailure for DbFailure
	// incident for DbFailure
	// <nil>
}

// A bridge writes signals with the same logger.
func ExampleNewBridge() {
	sink := signals.NewSink(signals.SinkOptions{})
	raised := logging.NewHandler(sink, logging.HandlerOptions{})
	base := slog.NewTextHandler(os.Stdout, &slog.HandlerOptions{ReplaceAttr: withoutTime})
	logger := slog.New(slog.NewMultiHandler(base, raised))

	bridge, err := logging.NewBridge(sink, logger.Handler(), logging.BridgeOptions{Pattern: "log.*, error.*"})
	if err != nil {
		panic(err)
	}
	logger.Warn("disk is slow")            // becomes a signal; the bridge does not write it again
	sink.RaiseKey("error.database", "db1") // becomes a record; the handler does not raise it again
	if err := bridge.Drain(context.Background()); err != nil {
		panic(err)
	}
	fmt.Println(sink.Count("*"), "signals")
	// Output:
	// level=WARN msg="disk is slow"
	// level=ERROR msg=error.database signal.name=error.database signal.key=db1
	// 2 signals
}

func withoutTime(groups []string, a slog.Attr) slog.Attr {
	if a.Key == slog.TimeKey || a.Value.Kind() == slog.KindTime {
		return slog.Attr{}
	}
	return a
}

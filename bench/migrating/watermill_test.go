package migrating_test

import (
	"context"
	"fmt"

	"github.com/ThreeDotsLabs/watermill"
	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/ThreeDotsLabs/watermill/pubsub/gochannel"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/signals"
)

func Example_watermillBefore() {
	ctx := context.Background()
	bus := gochannel.NewGoChannel(gochannel.Config{OutputChannelBuffer: 100}, watermill.NopLogger{})
	defer bus.Close()
	messages := core.Must(bus.Subscribe(ctx, "page.changed"))
	check(bus.Publish("page.changed", message.NewMessage(watermill.NewUUID(), []byte("/cat"))))
	m := <-messages
	if visit(ctx, Visit{string(m.Payload)}) != nil {
		m.Nack() // it comes again at once
	} else {
		m.Ack()
	}
	fmt.Println("visited", <-visited)
	// Output: visited /cat
}

func Example_watermillAfter() {
	sink := signals.NewSink(signals.SinkOptions{})
	handlers := core.Must(core.NewDispatcher(core.Options{MaxQueued: 100}))
	defer handlers.Close()
	handlers.Handle("page.*", func(ctx context.Context, s signals.Signal) error { return visit(ctx, Visit{s.Key}) })
	defer sink.Subscribe("page.*", handlers.Dispatch)()
	sink.RaiseKey("page.changed", "/cat")
	fmt.Println("visited", <-visited)
	// Output: visited /cat
}

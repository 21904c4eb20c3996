package data_test

import (
	"bytes"
	"context"
	"encoding/gob"
	"errors"
	"fmt"

	"github.com/ephemeralgo/ephemeral/atoms/data"
	"github.com/ephemeralgo/ephemeral/atoms/data/datatest"
	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/signals"
)

// Other parts of a program can use a store through signals.
func Example() {
	sink := signals.NewSink(signals.SinkOptions{})
	orders := core.Must(data.New[string](datatest.Memory(), data.Options[float64]{Name: "orders", Sink: sink}))
	data.Saved("orders").Subscribe(sink, func(s signals.Signal, _ struct{}) { fmt.Println("saved", s.Key) })
	data.Save[float64]("orders").Raise(sink, "order-123", 42.5) // save.data.orders; prints: saved order-123
	if err := orders.Drain(context.Background()); err != nil {  // waits for all requests
		panic(err)
	}
	orders.Close()
	// Output: saved order-123
}

// Requests for a key run in order. A request that fails gets an answer, too.
func ExampleLoad() {
	sink := signals.NewSink(signals.SinkOptions{})
	orders, err := data.New[string](datatest.Memory(), data.Options[float64]{Name: "orders", Sink: sink})
	if err != nil {
		panic(err)
	}
	defer orders.Close()
	data.Loaded[float64]("orders").Subscribe(sink, func(s signals.Signal, found data.Found[float64]) {
		fmt.Println("loaded", s.Key, found.Value, found.OK)
	})
	data.Failed("orders").Subscribe(sink, func(_ signals.Signal, err error) { fmt.Println(err) })

	data.Save[float64]("orders").Raise(sink, "order-123", 42.5)
	data.Load("orders").Raise(sink, "order-123", struct{}{})
	if err := orders.Flush(context.Background()); err != nil {
		panic(err)
	}
	sink.RaiseKey("save.data.orders", "order-124") // a signal without a value
	if err := orders.Drain(context.Background()); err != nil {
		panic(err)
	}
	fmt.Println(orders.Stats().Failed, "request failed")
	// Output:
	// loaded order-123 42.5 true
	// data: store "orders": save "order-124": the signal must have a payload of type float64, not <nil>
	// 1 request failed
}

func ExampleStore() {
	ctx := context.Background()
	stock, err := data.New[string](datatest.Memory(), data.Options[int]{Name: "stock", Codec: data.JSON[int]{}})
	if err != nil {
		panic(err)
	}
	defer stock.Close()

	for _, item := range []string{"apple", "pear", "apple"} {
		err := stock.Update(ctx, item, func(n int, ok bool) (int, error) { return n + 1, nil })
		if err != nil {
			panic(err)
		}
	}
	var all []data.Entry[string, int]
	for entry, err := range stock.All(ctx, "") { // in order
		if err != nil {
			panic(err)
		}
		all = append(all, entry)
	}
	fmt.Println(all)
	soldOut := errors.New("sold out")
	err = stock.Update(ctx, "plum", func(n int, ok bool) (int, error) {
		if n == 0 {
			return 0, soldOut
		}
		return n - 1, nil
	})
	fmt.Println(err)
	if e, ok := errors.AsType[*data.Error](err); ok {
		fmt.Println(e.Key, errors.Is(err, soldOut))
	}
	// Output:
	// [{apple 2} {pear 1}]
	// data: store "stock": update "plum": sold out
	// plum true
}

// gobs is a codec.
type gobs[V any] struct{}

var _ data.Codec[int] = gobs[int]{}

func (gobs[V]) Encode(value V) ([]byte, error) {
	var b bytes.Buffer
	err := gob.NewEncoder(&b).Encode(value)
	return b.Bytes(), err
}

func (gobs[V]) Decode(encoded []byte) (value V, err error) {
	err = gob.NewDecoder(bytes.NewReader(encoded)).Decode(&value)
	return value, err
}

// counted is an engine that counts the items that another engine saves.
type counted struct {
	data.Engine
	saved int
}

func (c *counted) Save(ctx context.Context, items []data.Item) error {
	c.saved += len(items)
	return c.Engine.Save(ctx, items)
}

// Engines and codecs can be combined. The default codec is [data.JSON].
func ExampleNew() {
	ctx := context.Background()
	engine := &counted{Engine: datatest.Memory()}
	words, err := data.New[string](engine, data.Options[map[string]int]{Codec: gobs[map[string]int]{}})
	if err != nil {
		panic(err)
	}
	defer words.Close()
	if err := words.Save(ctx, "page 1", map[string]int{"the": 7}); err != nil {
		panic(err)
	}
	count, _, err := words.Load(ctx, "page 1")
	fmt.Println(count, err, engine.saved)
	// Output: map[the:7] <nil> 1
}

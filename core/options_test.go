package core_test

import (
	"context"
	"fmt"
	"iter"
	"math"
	"reflect"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/coretest"
	"github.com/ephemeralgo/ephemeral/core/signals"
)

// Missing arguments, and options that make no sense without keys or in a loop, are refused. The
// error names them.
func TestBadInput(t *testing.T) {
	work := func(context.Context, int) error { t.Error("it ran"); return nil }
	one, many := core.Options{Lanes: []core.Lane{{Name: "a"}}}, core.Options{MaxPerKey: 2}
	mapped := func(seq iter.Seq2[int, error]) (err error) {
		for _, err = range seq {
		}
		return err
	}
	made := func(c any, err error) error {
		coretest.Check(t, reflect.ValueOf(c).IsNil(), "got %v and error %v, want just an error", c, err)
		return err
	}
	ctx := t.Context()
	for _, test := range []struct {
		what string
		err  error
		want string // parts of the error
	}{
		{"nil work", made(core.NewCoordinator[int](nil, core.Options{})), "work"},
		{"nil work with keys", made(core.NewKeyedCoordinator(strconv.Itoa, nil, core.Options{})), "work"},
		{"nil key", made(core.NewKeyedCoordinator[int, string](nil, work, core.Options{})), "key"},
		{"nil work with results", made(core.NewResultCoordinator[int, int](nil, core.Options{})), "work"},
		{"nil work with keys and results", made(core.NewKeyedResultCoordinator[int, int](strconv.Itoa, nil, core.Options{})), "work"},
		{"nil key with results", made(core.NewKeyedResultCoordinator[int, int, string](nil, square, core.Options{})), "key"},
		{"nil handler", made(core.NewProcessor(nil, core.Options{})), "handler"},
		{"ForEach without work", core.ForEach[int](ctx, upTo(1), nil, core.Options{}), "work"},
		{"ForEach without items", core.ForEach(ctx, nil, work, core.Options{}), ""},
		{"ForEachKeyed without a key", core.ForEachKeyed[int, string](ctx, upTo(1), nil, work, core.Options{}), "key"},
		{"ForEachKeyed without work", core.ForEachKeyed(ctx, upTo(1), strconv.Itoa, nil, core.Options{}), "work"},
		{"ForEachKeyed without items", core.ForEachKeyed(ctx, nil, strconv.Itoa, work, core.Options{}), ""},
		{"Map without work", mapped(core.Map[int, int](ctx, upTo(1), nil, core.Options{})), "work"},
		{"Map without items", mapped(core.Map(ctx, nil, square, core.Options{})), ""},
		{"bad options of ForEach", core.ForEach(ctx, upTo(1), work, core.Options{MaxConcurrency: -1}), "MaxConcurrency"},
		{"bad options of ForEachKeyed", core.ForEachKeyed(ctx, upTo(1), strconv.Itoa, work, core.Options{MaxPerKey: -1}), "MaxPerKey"},
		{"bad options of Map", mapped(core.Map(ctx, upTo(1), square, core.Options{MaxConcurrency: -1})), "MaxConcurrency"},
		{"MaxPerKey without keys", made(core.NewCoordinator(work, many)), "Options.MaxPerKey 2 without_keys"},
		{"MaxPerKey of results without keys", made(core.NewResultCoordinator(square, many)), "Options.MaxPerKey 2 without_keys"},
		{"MaxPerKey of ForEach", core.ForEach(ctx, upTo(1), work, many), "Options.MaxPerKey 2 without_keys"},
		{"MaxPerKey of a processor", made(core.NewProcessor(ignoring, many)), "Options.MaxPerKey 2"},
		{"Lanes of ForEach", core.ForEach(ctx, upTo(1), work, one), "Options.Lanes ForEach"},
		{"Classes of ForEach", core.ForEach(ctx, upTo(1), work, core.Options{Classes: []core.Class{{Name: "a"}}}), "Options. ForEach"},
		{"Lanes of ForEachKeyed", core.ForEachKeyed(ctx, upTo(1), strconv.Itoa, work, one), "Options.Lanes ForEach"},
		{"Lanes of Map", mapped(core.Map(ctx, upTo(1), square, one)), "Options.Lanes Map"},
		{"Lanes of a processor", made(core.NewProcessor(ignoring, one)), "Options.Lanes"},
		{"Classes of a processor", made(core.NewProcessor(ignoring, core.Options{Classes: []core.Class{{Name: "a"}}})), "Options.Lanes_and_Classes_are_for_coordinators"},
		{"Lanes of a dispatcher", made(core.NewDispatcher(one)), "Options.Lanes"},
		{"Ageing of ForEach", core.ForEach(ctx, upTo(1), work, core.Options{Ageing: 1}), "Options.Ageing 1ns"},
		{"Ageing of a dispatcher", made(core.NewDispatcher(core.Options{Ageing: 1})), "Options.Ageing"},
		{"StopOnError", made(core.NewCoordinator(work, core.Options{StopOnError: true})), "Options.StopOnError ForEach"},
		{"StopOnError with results", made(core.NewResultCoordinator(square, core.Options{StopOnError: true})), "Options.StopOnError"},
		{"StopOnError of a processor", made(core.NewProcessor(ignoring, core.Options{StopOnError: true})), "Options.StopOnError"},
		{"StopOnError of a dispatcher", made(core.NewDispatcher(core.Options{StopOnError: true})), "Options.StopOnError"},
		{"MaxConcurrency of a processor", made(core.NewProcessor(ignoring, core.Options{MaxConcurrency: -1})), "Options.MaxConcurrency -1"},
		{"MaxConcurrency of a dispatcher", made(core.NewDispatcher(core.Options{MaxConcurrency: -1})), "Options.MaxConcurrency -1"},
		{"MaxPerKey of a dispatcher", made(core.NewDispatcher(core.Options{MaxPerKey: -2})), "Options.MaxPerKey -2"},
		{"ResumeOn of a dispatcher", made(core.NewDispatcher(core.Options{ResumeOn: "go"})), `Options.ResumeOn "go"`},
	} {
		for _, part := range append(strings.Fields(test.want), "core: ") {
			checkSays(t, test.what, test.err, strings.ReplaceAll(part, "_", " "))
		}
	}
}

// Options that make no sense are refused at construction, all at once. The error has each part of the text.
func TestOptionsRefused(t *testing.T) {
	many := make([]core.Lane, 65)
	for i := range many {
		many[i].Name = fmt.Sprint(i)
	}
	one := []core.Lane{{Name: "a"}}
	for want, opts := range map[string]core.Options{
		`lane 1 of Options.Lanes; name ""; blank`:                      {Lanes: []core.Lane{{}}},
		`lane 2; " \t"; blank`:                                         {Lanes: []core.Lane{{Name: "a"}, {Name: " \t"}}},
		`lane 3; "a"; lane 1 already`:                                  {Lanes: []core.Lane{{Name: "a"}, {Name: "b"}, {Name: "a"}}},
		"Options.Lanes; 65; 64":                                        {Lanes: many},
		"lane 1; limit; -2; must not be negative":                      {Lanes: []core.Lane{{Name: "a", Limit: -2}}},
		"lane 1; MaxDefer; 1s; no DeferOn":                             {Lanes: []core.Lane{{Name: "a", MaxDefer: time.Second}}},
		"lane 1; MaxDefer; -1ns; no DeferOn":                           {Lanes: []core.Lane{{Name: "a", MaxDefer: -1}}, DeferOn: "x"},
		"lane 1; blank; limit; lane 2":                                 {Lanes: []core.Lane{{Limit: -1}, {Name: "a", Limit: -2}}},
		"Options.Ageing; 1s; no lanes":                                 {Ageing: time.Second},
		"Options.Ageing; -1ns; no lanes":                               {Ageing: -1},
		`Options.ResumeOn; "go"; no DeferOn`:                           {Lanes: one, ResumeOn: "go"},
		"Options.MaxPerKey; -1; must not be negative":                  {MaxPerKey: -1},
		"MaxPerKey; MaxConcurrency is -1":                              {MaxPerKey: -1, Lanes: one, MaxConcurrency: -1},
		`class 1 of Options.Classes: name " " is blank`:                {Classes: []core.Class{{Name: " "}}},
		`class 2 of Options.Classes: name "a" is that of class 1`:      {Classes: []core.Class{{Name: "a"}, {Name: "a"}}},
		"class 1 of Options.Classes: limit is -1":                      {Classes: []core.Class{{Name: "a", Limit: -1}}},
		"Options.Classes has 65 entries, but there can be 64":          {Classes: make([]core.Class, 65)},
		"class 1 of Options.Classes: Rate: core: rate is NaN":          {Classes: []core.Class{{Name: "a", Rate: core.Rate{PerSecond: math.NaN()}}}},
		"class 1 of Options.Classes: CostRate: core: rate is -1":       {Classes: []core.Class{{Name: "a", CostRate: core.Rate{PerSecond: -1}}}},
		"class 1; MaxDefer is 1s, but there is no DeferOn":             {Classes: []core.Class{{Name: "a", MaxDefer: time.Second}}},
		"Trials is 2, but there is no TrialOn":                         {Classes: []core.Class{{Name: "a", Trials: 2}}},
		"Trials is -1":                                                 {Classes: []core.Class{{Name: "a", TrialOn: "x", Trials: -1}}},
		"Options has KeyRate or KeyCostRate, but this is without keys": {KeyCostRate: core.PerMinute(1)},
		"Options.KeyRate: core: rate is +Inf":                          {KeyRate: core.Rate{PerSecond: math.Inf(1)}},
	} {
		_, err := core.NewCoordinator(coretest.Run, opts)
		checkSays(t, fmt.Sprintf("%+v", opts), err, strings.Split("core: ; "+want, "; ")...)
	}
	for _, opts := range []core.Options{ // the checks above are not too strict
		{Lanes: one, Ageing: time.Second},
		{Lanes: one, Ageing: -1},
		{Lanes: many[:64]},
		{Lanes: []core.Lane{{Name: "a", DeferOn: "x", MaxDefer: -1}}, ResumeOn: "go"},
		{Lanes: []core.Lane{{Name: "a"}, {Name: "A", Depth: -1}}, MaxQueued: -1}, // case matters
		{Lanes: []core.Lane{}},
	} {
		_, err := core.NewCoordinator(coretest.Run, opts)
		checkError(t, fmt.Sprintf("%+v", opts), err, nil)
	}
	c := bodies(t, core.Options{})
	for _, cost := range []int{-1, math.MaxInt} {
		if cost == math.MaxInt32 {
			continue // each int fits
		}
		_, err := c.Cost(cost).Enqueue(t.Context(), quick)
		checkSays(t, "cost", err, "cost is")
		coretest.Check(t, c.Stats().Rejected > 0, "cost %d: got %v, want it to be rejected", cost, c.Stats())
	}
}

func ignoring(context.Context, signals.Signal) error { return nil }

func TestOptionDefaults(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := bodies(t, core.Options{})
		checkEqual(t, "Name", c.Name(), "coordinator")
		checkEqual(t, "MaxConcurrency", c.Stats().Limit, runtime.GOMAXPROCS(0))
		checkEqual(t, "a sink that is shared", c.Sink() == bodies(t, core.Options{}).Sink(), false)

		c = bodies(t, core.Options{MaxConcurrency: 1})
		g := newGate()
		enqueue(t, c, g.body)
		synctest.Wait()
		for range 1024 { // MaxQueued
			enqueue(t, c, quick)
		}
		_, err := c.TryEnqueue(context.Background(), quick)
		checkError(t, "TryEnqueue of one too many", err, core.ErrFull)
		g.open()
		checkError(t, "Flush", c.Flush(t.Context()), nil)
		checkEqual(t, "MaxTracked", c.Stats().Tracked, 200)
		checkEqual(t, "EchoCapacity", len(echoed(c, signals.Query{})), 256)
		time.Sleep(time.Minute)
		checkEqual(t, "EchoAge", len(echoed(c, signals.Query{})), 0)
		time.Sleep(4*time.Minute - 1)
		checkEqual(t, "MaxAge, just before", c.Stats().Tracked, 200)
		time.Sleep(time.Nanosecond)
		checkEqual(t, "MaxAge, just after", c.Stats().Tracked, 0)
		closeDown(t, c)

		c = bodies(t, core.Options{DeferOn: "busy"})
		c.Sink().Raise("busy")
		begun := time.Now()
		checkError(t, "Do", c.Do(t.Context(), quick), nil)
		checkEqual(t, "MaxDefer", time.Since(begun), 5*time.Second)
	})
}

// OnSignal is called for what operations raise, before the subscribers of the sink, and OnRetract for what they take
// back. Panics in them have no other effect.
func TestOptionOnSignal(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var j journal
		sink := signals.NewSink(signals.SinkOptions{})
		sink.Subscribe("*", func(s signals.Signal) { j.note("sink " + s.Name) })
		note := func(entry string) {
			j.note(entry)
			panic("on purpose")
		}
		c := bodies(t, core.Options{
			Sink:      sink,
			OnSignal:  func(s signals.Signal) { note("OnSignal " + s.Name) },
			OnRetract: func(r signals.Retraction) { note("OnRetract " + r.Signal.Name) },
		})
		checkError(t, "Do", c.Do(t.Context(), func(ctx context.Context) error {
			op := core.OperationFrom(ctx)
			op.Raise("a")
			op.Retract("a")
			op.Hold("b", 0)()
			return nil
		}), nil)
		sink.Raise("direct")
		sink.Retract("direct") // of no operation
		checkEqual(t, "panics", c.Stats().Panics, 4)
		j.check(t, "OnSignal a", "sink a", "OnRetract a", "OnSignal b", "sink b", "OnRetract b", "sink direct")
	})
}

// callWith calls a method. All arguments are zero, except the context, numbers, and
// functions, which do nothing. If the method returns a sequence, callWith calls it, too.
// It returns the value of a panic, or nil.
func callWith(method reflect.Value, ctx context.Context) (panicked any) {
	defer func() { panicked = recover() }()
	nothing := func(t reflect.Type) reflect.Value {
		return reflect.MakeFunc(t, func([]reflect.Value) (results []reflect.Value) {
			for i := range t.NumOut() {
				results = append(results, reflect.Zero(t.Out(i)))
			}
			return results
		})
	}
	var args []reflect.Value
	for i := range method.Type().NumIn() {
		switch t := method.Type().In(i); {
		case t.Kind() == reflect.Func:
			args = append(args, nothing(t))
		case t == reflect.TypeFor[context.Context]() && ctx != nil:
			args = append(args, reflect.ValueOf(ctx))
		case t.Kind() == reflect.Int:
			args = append(args, reflect.ValueOf(1)) // which is in range
		default:
			args = append(args, reflect.Zero(t))
		}
	}
	for _, result := range method.Call(args) {
		if result.Kind() == reflect.Func && result.Type().NumIn() == 1 {
			result.Call([]reflect.Value{nothing(result.Type().In(0))})
		}
	}
	return nil
}

// Each method of a coordinator that no constructor has made says what to do.
func TestZeroCoordinatorSaysWhatToDo(t *testing.T) {
	for _, zero := range []any{new(core.Coordinator[int]), new(core.ResultCoordinator[int, int]), new(core.Dispatcher), new(core.Processor)} {
		v := reflect.ValueOf(zero)
		for i := range v.NumMethod() {
			what := fmt.Sprintf("%T.%s", zero, v.Type().Method(i).Name)
			checkSays(t, what, callWith(v.Method(i), t.Context()), "core: ", "NewCoordinator")
		}
	}
}

// Each method that is given a nil context says what to do.
func TestNilContextSaysWhatToDo(t *testing.T) {
	results := answers(t, core.Options{})
	finished, err := results.Submit(t.Context(), answering("done"))
	checkError(t, "Submit", err, nil)
	for _, v := range []any{
		core.Must(core.NewCoordinator(func(context.Context, int) error { return nil }, core.Options{})),
		results, finished, core.Must(core.NewDispatcher(core.Options{})),
	} {
		v := reflect.ValueOf(v)
		for i := range v.NumMethod() {
			m := v.Method(i)
			if m.Type().NumIn() == 0 || m.Type().In(0) != reflect.TypeFor[context.Context]() {
				continue
			}
			if m.Type().NumIn() == 2 && m.Type().In(1) == reflect.TypeFor[core.OperationID]() {
				continue // asks for the operation first: see Future.Wait
			}
			what := fmt.Sprintf("%s.%s", v.Type(), v.Type().Method(i).Name)
			checkSays(t, what, callWith(m, nil), "core: ", "context.Background()")
		}
	}
}

package bench

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/failsafe-go/failsafe-go/ratelimiter"
	"github.com/throttled/throttled/v2"
	"github.com/throttled/throttled/v2/store/memstore"
	"golang.org/x/time/rate"

	"github.com/ephemeralgo/ephemeral/atoms/ratelimit"
	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/core/bucket"
)

// limiterKeys is the number of keys that have a limit each.
const limiterKeys = 1 << 12

// The goals beside x/time/rate are the same for a permission and a refusal, and for any number
// of goroutines. A key costs more, because it has to be found.
const (
	limiterGoal = 0.4
	keyedGoal   = 0.5
)

// asker is one way to ask for permission.
type asker struct {
	name string
	new  func(deny bool) (ask func(i int) bool)
}

// The rate of every limiter is one request per nanosecond, so that it never refuses. To
// measure refusals, it is one request per hour, and the first token has been used.
var allowAskers = []asker{
	{"ours", func(deny bool) func(int) bool {
		per := bucket.MaxRate
		if deny {
			per = 1.0 / 3600
		}
		l := core.Must(ratelimit.New(core.Rate{PerSecond: per, Burst: burstFor(deny)}, ratelimit.Options{}))
		return func(int) bool { return l.Allow() }
	}},
	{"x-time-rate", func(deny bool) func(int) bool {
		l := rate.NewLimiter(rate.Every(intervalFor(deny)), burstFor(deny))
		return func(int) bool { return l.Allow() }
	}},
	{"throttled", func(deny bool) func(int) bool {
		ask := throttledAsk(intervalFor(deny), burstFor(deny), 1)
		return func(int) bool { return ask("key") }
	}},
	{"failsafe", func(deny bool) func(int) bool { // has no bursts
		l := ratelimiter.NewSmoothWithMaxRate[any](intervalFor(deny))
		return func(int) bool { return l.TryAcquirePermit() }
	}},
}

// A limiter that never refuses has a large burst here, and a rate that is too low to
// refill a key before its next request. With x/time/rate the program keeps a limiter for
// each key; this one never removes any.
var keyedAskers = []asker{
	{"ours", func(deny bool) func(int) bool {
		k := core.Must(ratelimit.NewKeyed[string](core.Rate{PerSecond: 1.0 / 3600, Burst: burstFor(deny)}, ratelimit.Options{Capacity: 4 * limiterKeys}))
		return func(i int) bool { return k.Allow(clients[i%limiterKeys]) }
	}},
	{"x-time-rate", func(deny bool) func(int) bool {
		var mu sync.Mutex
		limiters := map[string]*rate.Limiter{}
		return func(i int) bool {
			key := clients[i%limiterKeys]
			mu.Lock()
			l := limiters[key]
			if l == nil {
				l = rate.NewLimiter(rate.Every(time.Hour), burstFor(deny))
				limiters[key] = l
			}
			mu.Unlock()
			return l.Allow()
		}
	}},
	{"throttled", func(deny bool) func(int) bool {
		ask := throttledAsk(time.Hour, burstFor(deny), 4*limiterKeys)
		return func(i int) bool { return ask(clients[i%limiterKeys]) }
	}},
}

var clients = func() (keys [limiterKeys]string) {
	for i := range keys {
		keys[i] = "client:" + strconv.Itoa(i)
	}
	return keys
}()

func burstFor(deny bool) int {
	if deny {
		return 1
	}
	return 1 << 20
}

func intervalFor(deny bool) time.Duration {
	if deny {
		return time.Hour
	}
	return time.Nanosecond
}

func throttledAsk(interval time.Duration, burst, keys int) func(key string) bool {
	store, err := memstore.NewCtx(keys)
	check(err)
	per := throttled.PerDuration(1, interval)
	l, err := throttled.NewGCRARateLimiterCtx(store, throttled.RateQuota{MaxRate: per, MaxBurst: burst - 1})
	check(err)
	ctx := context.Background()
	return func(key string) bool {
		limited, _, err := l.RateLimitCtx(ctx, key, 1)
		return err == nil && !limited
	}
}

// limiterRows measure a granted request, a refused one, and one that waits.
func limiterRows() []Row {
	var rows []Row
	for _, kind := range []struct {
		name   string
		goal   float64
		askers []asker
	}{{"op=", limiterGoal, allowAskers}, {"op=keyed-", keyedGoal, keyedAskers}} {
		for _, deny := range []bool{false, true} {
			for _, goroutines := range []int{1, 8} {
				row := Row{Name: fmt.Sprintf("%s%s/goroutines=%d", kind.name, map[bool]string{false: "allow", true: "deny"}[deny], goroutines)}
				for _, a := range kind.askers {
					row.Sides = append(row.Sides, askSide(a, kind.goal, deny, goroutines))
				}
				rows = append(rows, row)
			}
		}
	}
	return append(rows, Row{Name: "op=wait/goroutines=1", Sides: []Side{
		waitSide("ours", func() func(context.Context) error {
			return core.Must(ratelimit.New(core.Rate{PerSecond: bucket.MaxRate, Burst: burstFor(false)}, ratelimit.Options{})).Wait
		}),
		waitSide("x-time-rate", func() func(context.Context) error {
			return rate.NewLimiter(rate.Every(intervalFor(false)), burstFor(false)).Wait
		}),
		waitSide("failsafe", func() func(context.Context) error {
			return ratelimiter.NewSmoothWithMaxRate[any](intervalFor(false)).AcquirePermit
		}),
	}})
}

// besideRate is the goal if a side is x/time/rate; the other sides have none.
func besideRate(side string, goal float64) float64 {
	if side == "x-time-rate" {
		return goal
	}
	return 0
}

func askSide(a asker, goal float64, deny bool, goroutines int) Side {
	return Side{a.name, besideRate(a.name, goal), func() Body {
		ask := a.new(deny)
		for i := range limiterKeys {
			ask(i)
		}
		var from atomic.Int64
		run := func(n int) {
			at := int(from.Add(int64(n))) - n
			for i := at; i < at+n; i++ {
				ask(i)
			}
		}
		return Body{Run: func(n int) { spread(goroutines, n, run) }}
	}}
}

func waitSide(name string, maker func() func(context.Context) error) Side {
	return Side{name, besideRate(name, limiterGoal), func() Body {
		wait, ctx := maker(), context.Background()
		return Body{Run: func(n int) {
			for range n {
				check(wait(ctx))
			}
		}}
	}}
}

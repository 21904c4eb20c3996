package adaptiverate_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/patterns/adaptiverate"
)

// busyError is what a client makes of "429 Too Many Requests".
type busyError struct{ wait time.Duration }

func (e busyError) Error() string             { return "the server is busy" }
func (e busyError) RetryAfter() time.Duration { return e.wait }

// The first call is refused, and the next one waits as long as the server wants.
func Example() {
	var first, second time.Time
	polite, err := adaptiverate.New(func(_ context.Context, request int) error {
		if request == 1 {
			first = time.Now()
			return busyError{50 * time.Millisecond}
		}
		second = time.Now()
		return nil
	}, core.Options{Name: "api", MaxConcurrency: 1})
	if err != nil {
		panic(err)
	}
	defer polite.Close()

	ctx := context.Background()
	fmt.Println(polite.Do(ctx, 1))
	id := core.Must(polite.Enqueue(ctx, 2))
	if err := polite.Wait(ctx, id); err != nil {
		panic(err)
	}
	fmt.Println("waited:", second.Sub(first) >= 50*time.Millisecond)

	polite.Sink().Raise("rate-limit:60000ms") // any other code may say so too
	id = core.Must(polite.Enqueue(ctx, 3))
	why, _ := polite.Explain(id)
	fmt.Println(why.Reasons[0])
	polite.Cancel(id, errors.New("too late"))
	fmt.Println(polite.Wait(ctx, id))
	// Output:
	// the server is busy
	// waited: true
	// deferred because of held signal "rate.limited.api"
	// too late
}

package adaptiverate_test

import (
	"context"
	"fmt"
	"time"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/patterns/adaptiverate"
)

// busyError is the error of a client for "429 Too Many Requests".
type busyError struct{ wait time.Duration }

func (e busyError) Error() string             { return "the server is busy" }
func (e busyError) RetryAfter() time.Duration { return e.wait }

// The server refuses the first call, so the next one waits.
func Example() {
	polite := core.Must(adaptiverate.New(func(_ context.Context, request int) error {
		if request == 1 {
			return busyError{time.Hour} // its method RetryAfter returns an hour
		}
		return nil
	}, core.Options{Name: "api", MaxConcurrency: 8}))
	defer polite.Close()

	ctx := context.Background()
	fmt.Println(polite.Do(ctx, 1)) // the server is busy
	id := core.Must(polite.Enqueue(ctx, 2))
	why, _ := polite.Explain(id)
	fmt.Println(why.Status, why.Reasons[0]) // pending deferred because of held signal "rate.limited.api"

	polite.Sink().Raise("rate-limit:0ms") // other code ends the wait
	fmt.Println(polite.Wait(ctx, id))     // <nil>
	// Output:
	// the server is busy
	// pending deferred because of held signal "rate.limited.api"
	// <nil>
}

package signalreactionshowcase_test

import (
	"context"
	"fmt"

	"github.com/ephemeralgo/ephemeral/patterns/signalreactionshowcase"
)

func Example() {
	result, err := signalreactionshowcase.Run(context.Background(), 8)
	if err != nil {
		panic(err)
	}
	fmt.Println("waited because of a signal:", result.Deferred)
	fmt.Println("refused because of a signal:", result.Refused)
	fmt.Println("seen at once:", result.Called)
	fmt.Println("handled in the background:", result.Dispatched)
	fmt.Println("found on the sink:", result.Polled)
	fmt.Println("signals:", len(result.Signals))
	// Output:
	// waited because of a signal: 8
	// refused because of a signal: 1
	// seen at once: 16
	// handled in the background: 8
	// found on the sink: 8
	// signals: 16
}

package filepipeline

import (
	"fmt"
	"runtime"

	"github.com/ephemeralgo/ephemeral/core/signals"
)

// Limits bound the cost of a single image.
type Limits struct {
	// MaxBytes is the largest file that is read as an image; 0 means 64 MiB. Making a thumbnail holds the compressed
	// file in memory.
	MaxBytes int64
	// MaxPixels is the largest area an image may declare; 0 means 50 million. Decoding takes 4 to 20 bytes per pixel
	// (a progressive CMYK JPEG is the most expensive).
	MaxPixels int64
}

// Options bounds a run. A zero Options consists entirely of default values.
type Options struct {
	// Readers is how many files are read and hashed at once; 0 means 8.
	Readers int
	// Thumbnailers is how many images are decoded and scaled at once; 0 means one per processor. Together with Limits
	// it bounds the memory of the whole run.
	Thumbnailers int
	Limits       Limits
	// Sink receives every signal of the run; nil means a new sink.
	Sink *signals.Sink
}

func (o Options) withDefaults() (Options, error) {
	for _, n := range []struct {
		name  string
		value int64
	}{
		{"Readers", int64(o.Readers)},
		{"Thumbnailers", int64(o.Thumbnailers)},
		{"MaxBytes", o.Limits.MaxBytes},
		{"MaxPixels", o.Limits.MaxPixels},
	} {
		if n.value < 0 {
			return o, fmt.Errorf("filepipeline: %s is %d, it must not be negative", n.name, n.value)
		}
	}
	setDefault(&o.Readers, 8)
	setDefault(&o.Thumbnailers, runtime.GOMAXPROCS(0))
	setDefault(&o.Limits.MaxBytes, 64<<20)
	setDefault(&o.Limits.MaxPixels, 50_000_000)
	if o.Sink == nil {
		o.Sink = signals.NewSink(signals.SinkOptions{})
	}
	return o, nil
}

func setDefault[N int | int64](n *N, value N) {
	if *n == 0 {
		*n = value
	}
}

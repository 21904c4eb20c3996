package bench

import (
	"runtime"
	"testing"
)

func BenchmarkRaise(b *testing.B)        { benchmark(b, raiseRows()) }
func BenchmarkUnique(b *testing.B)       { benchmark(b, uniqueRows()) }
func BenchmarkSense(b *testing.B)        { benchmark(b, senseRows()) }
func BenchmarkMatch(b *testing.B)        { benchmark(b, matchRows()) }
func BenchmarkRun(b *testing.B)          { benchmark(b, runRows()) }
func BenchmarkOneCore(b *testing.B)      { benchmark(b, oneCoreRows()) }
func BenchmarkKeyed(b *testing.B)        { benchmark(b, keyedRows()) }
func BenchmarkParallel(b *testing.B)     { benchmark(b, parallelRows()) }
func BenchmarkCache(b *testing.B)        { benchmark(b, cacheRows()) }
func BenchmarkSlidingCache(b *testing.B) { benchmark(b, slidingcacheRows()) }
func BenchmarkLimiter(b *testing.B)      { benchmark(b, limiterRows()) }
func BenchmarkRetry(b *testing.B)        { benchmark(b, retryRows()) }
func BenchmarkBreaker(b *testing.B)      { benchmark(b, breakerRows()) }
func BenchmarkLogging(b *testing.B)      { benchmark(b, loggingRows()) }
func BenchmarkTelemetry(b *testing.B)    { benchmark(b, telemetryRows()) }
func BenchmarkAttached(b *testing.B)     { benchmark(b, attachedRows()) }
func BenchmarkPage(b *testing.B)         { benchmark(b, pageRows()) }
func BenchmarkWave(b *testing.B)         { benchmark(b, waveRows()) }
func BenchmarkFailover(b *testing.B)     { benchmark(b, failoverRows()) }
func BenchmarkOriginal(b *testing.B)     { benchmark(b, originalRows()) }

// benchmark runs every side of every row alone. A side is made once, before its first
// run.
func benchmark(b *testing.B, rows []Row) {
	for _, row := range rows {
		b.Run(row.Name, func(b *testing.B) {
			for _, side := range row.Sides {
				var body Body
				made := false
				b.Run("side="+side.Name, func(b *testing.B) {
					if !made {
						made, body = true, side.New()
					}
					body.Prepare(b.N)
					b.ReportAllocs()
					b.ResetTimer()
					body.Run(b.N)
				})
				body.Done()
			}
		})
	}
	runtime.KeepAlive(Ballast)
}

// Package coretest checks in tests that signals were raised, that nothing is left to do, and
// that a type ends as it promises. It is imported by tests only.
//
// Everything that accepts work and has to be ended keeps the promises of
// [core.Lifecycle]. [RunLifecycle] checks them one by one, each in its own synctest
// bubble:
//
//	func TestLifecycle(t *testing.T) {
//		coretest.RunLifecycle(t, func(t testing.TB) coretest.Subject {
//			pool, err := fixedwork.New(coretest.Run, core.Options{})
//			if err != nil {
//				t.Fatal(err)
//			}
//			return coretest.Subject{
//				Lifecycle: pool,
//				Submit: func(ctx context.Context, body coretest.Body) error {
//					_, err := pool.Enqueue(ctx, body)
//					return err
//				},
//				Stats:    pool.Stats,
//				WaitIdle: pool.WaitIdle,
//			}
//		})
//	}
//
// The subject of the test need not be a pool. It only has to run each body that Submit
// accepted, sooner or later and not on the goroutine of the caller: one at a time or
// many, at once or in batches, now or after an interval. The bubble has its own clock, so
// waiting takes no time.
//
// [Watch] records signals, so that a test can check which were raised:
//
//	signals := coretest.Watch(t, sink, "breaker.*")
//	…
//	signals.Expect("breaker.opened", "breaker.closed")
//	signals.None()
//
// Signals are recorded before the call that raises them returns. To see those of other
// goroutines, call synctest.Wait first.
//
// [Idle] fails with the reasons of everything that still waits or runs. Call it at the end of a
// test, or where nothing must be left to do.
package coretest

// Package coretest helps to test what is built on core. It is imported by tests
// only.
//
// Everything that accepts work and has to be brought to an end keeps the same
// promises: those of [core.Lifecycle]. [RunLifecycle] checks them, one by one, each
// in a synctest bubble of its own:
//
//	func TestLifecycle(t *testing.T) {
//		coretest.RunLifecycle(t, func(t testing.TB) coretest.Subject {
//			pool, err := fixedwork.New(coretest.Run, fixedwork.Options{})
//			if err != nil {
//				t.Fatal(err)
//			}
//			return coretest.Subject{
//				Lifecycle: pool,
//				Submit: func(ctx context.Context, body coretest.Body) error {
//					_, err := pool.Enqueue(ctx, body)
//					return err
//				},
//				Stats: pool.Stats,
//			}
//		})
//	}
//
// What is under test need not be a pool. It has to run, sooner or later and on a
// goroutine that is not the caller's, each body that Submit accepted, and that is
// all: one at a time or many, at once or in batches, now or when an interval is
// over. Time is the bubble's, so waiting costs nothing.
//
// What signals were raised is the other thing that tests want to know. [Watch]
// records them:
//
//	signals := coretest.Watch(t, sink, "breaker.*")
//	…
//	signals.Expect("breaker.opened", "breaker.closed")
//	signals.None()
//
// Signals are recorded before the call that raises them returns. To see those of
// other goroutines, let the bubble come to rest first, with synctest.Wait.
package coretest

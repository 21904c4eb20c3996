// Package sqlite stores values by key in a table of a SQLite file. The file may have tables of
// other stores, and your own tables. Other processes may use it, too. [Open] returns a [data.Store].
//
// There is no loss window: when a method has returned nil, its change survives a crash. It also
// survives a power cut, if the disk keeps what it has synced.
//
// # The table
//
// The name of the store is the name of the table:
//
//	create table "orders" (key blob not null primary key, value any not null) strict
//
// The table has rowids, because values may be large: to count or list keys, SQLite reads only the
// index of the keys. Keys are compared as bytes. A value that is UTF-8 without the byte 0 is kept
// as TEXT, and any other value as BLOB. All JSON is TEXT, so SQLite's functions can read it:
//
//	select cast(key as text), value ->> '$.total' from orders where value ->> '$.status' = 'open'
//
// Other programs may write to the table. Their keys must be blobs: cast('order-1' as blob).
// The table has no columns for times: if you need a time, put it into the value.
package sqlite

package store

import (
	"context"
	"iter"
)

// pages yields what a query selects, a page at a time: no transaction is open
// while the caller looks at an item, so a slow one holds up nothing.
//
// first finds where the newest so many begin, page reads those after a key,
// key is an item's.
func pages[T any](s *Store, ctx context.Context, after int64,
	first func(*Tx) (int64, error), page func(*Tx, int64) ([]T, error), key func(T) int64,
) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		from := after
		begun := false
		for {
			var list []T
			err := s.View(ctx, func(tx *Tx) (err error) {
				if !begun {
					var start int64
					if start, err = first(tx); err != nil {
						return err
					}
					from, begun = max(from, start-1), true
				}
				list, err = page(tx, from)
				return err
			})
			if err != nil {
				var none T
				yield(none, err)
				return
			}
			for _, v := range list {
				if !yield(v, nil) {
					return
				}
				from = key(v)
			}
			if len(list) < batch {
				return
			}
		}
	}
}

// newest is the key where the newest so many rows of a query begin that is
// ordered newest first; 0 if it has no more than that, or no limit is set.
func newest(tx *Tx, query string, args []any, limit int) (int64, error) {
	if limit <= 0 {
		return 0, nil
	}
	var key int64
	_, err := tx.one(query+" LIMIT 1 OFFSET ?", append(args, limit-1), &key)
	return key, err
}

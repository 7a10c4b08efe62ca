package alert

import (
	"reflect"
	"time"

	"github.com/locksteward/locksteward"
	"github.com/locksteward/locksteward/api"
)

// Templates see a copy of a notification in which every text is one line of printable
// characters: a template may split lines, a lock's name may not.

// lockName is the name of a lock as people read it: the same as in the finding's
// texts, and one line. What is longer than is ever shown is cut off.
func lockName(k api.Key) string {
	return tidy(locksteward.DisplayKey(cutBytes(nameOf(k), maxRead)))
}

// legible copies a notification for a template. It changes nothing of p.
func legible(p Payload) Payload {
	return legibleValue(reflect.ValueOf(p)).Interface().(Payload)
}

// legibleValue copies whatever a [Payload] is made of: a field that is added to it
// is covered as well.
func legibleValue(v reflect.Value) reflect.Value {
	switch v.Kind() {
	case reflect.String:
		return reflect.ValueOf(tidy(v.String())).Convert(v.Type())
	case reflect.Pointer:
		if v.IsNil() {
			return v
		}
		out := reflect.New(v.Type().Elem())
		out.Elem().Set(legibleValue(v.Elem()))
		return out
	case reflect.Slice:
		if v.IsNil() {
			return v
		}
		out := reflect.MakeSlice(v.Type(), v.Len(), v.Len())
		for i := range v.Len() {
			out.Index(i).Set(legibleValue(v.Index(i)))
		}
		return out
	case reflect.Map:
		if v.IsNil() {
			return v
		}
		out := reflect.MakeMapWithSize(v.Type(), v.Len())
		for key, value := range v.Seq2() {
			out.SetMapIndex(legibleValue(key), legibleValue(value))
		}
		return out
	case reflect.Struct:
		switch one := v.Interface().(type) {
		case time.Time:
			return v
		case api.Key:
			one.Key = lockName(one)
			return reflect.ValueOf(one)
		}
		out := reflect.New(v.Type()).Elem()
		for i := range v.NumField() {
			out.Field(i).Set(legibleValue(v.Field(i)))
		}
		return out
	default:
		return v
	}
}

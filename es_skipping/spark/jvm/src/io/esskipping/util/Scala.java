package io.esskipping.util;

import java.util.ArrayList;
import java.util.List;
import scala.Function1;
import scala.PartialFunction;
import scala.Product;
import scala.collection.Iterable;
import scala.collection.Iterator;
import scala.collection.immutable.Seq;
import scala.collection.immutable.Vector$;
import scala.runtime.AbstractPartialFunction;

/** The few bridges between Java's and Scala's collections and functions. */
public final class Scala {
  private Scala() {}

  public static <T> List<T> list(Iterable<? extends T> values) {
    return list(values.iterator());
  }

  private static <T> List<T> list(Iterator<? extends T> values) {
    List<T> list = new ArrayList<>();
    while (values.hasNext()) list.add(values.next());
    return list;
  }

  @SuppressWarnings({"unchecked", "rawtypes"})
  public static <T> Seq<T> seq(List<T> values) {
    scala.collection.mutable.Builder builder = Vector$.MODULE$.newBuilder();
    for (T value : values) builder.addOne(value);
    return (Seq<T>) builder.result();
  }

  @SuppressWarnings("unchecked")
  public static <K, V> scala.collection.immutable.Map<K, V> emptyMap() {
    return (scala.collection.immutable.Map<K, V>) scala.collection.immutable.Map$.MODULE$.empty();
  }

  @SuppressWarnings("unchecked")
  public static <K, V> scala.collection.immutable.Map<K, V> map(java.util.Map<K, V> values) {
    scala.collection.immutable.Map<K, V> map = emptyMap();
    for (java.util.Map.Entry<K, V> entry : values.entrySet()) {
      map = (scala.collection.immutable.Map<K, V>) map.updated(entry.getKey(), entry.getValue());
    }
    return map;
  }

  /** What a Scala case class was made of, in order. */
  public static Object[] fields(Product product) {
    return list(product.productIterator()).toArray();
  }

  /**
   * A total function as the partial function that {@code transform} needs; it returns its argument to change nothing.
   */
  public static <T> PartialFunction<T, T> everywhere(java.util.function.Function<T, T> function) {
    return new AbstractPartialFunction<T, T>() {
      @Override public boolean isDefinedAt(T value) {
        return true;
      }

      @SuppressWarnings("unchecked")
      @Override public <A extends T, B> B applyOrElse(A value, Function1<A, B> otherwise) {
        return (B) function.apply(value);
      }
    };
  }
}

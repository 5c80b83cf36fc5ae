package io.esskipping.scan;

import java.lang.reflect.Field;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;

/** Calls into Delta and Iceberg, without which this package compiles and runs. */
final class Reflection {
  private Reflection() {}

  /** Calls a method by name and number of arguments, a class's own before those of its interfaces. */
  static Object call(Object on, String name, Object... arguments) {
    for (Class<?> type = on.getClass(); type != null; type = type.getSuperclass()) {
      for (Method method : type.getDeclaredMethods()) {
        if (fits(method, name, arguments)) return invoke(method, on, arguments);
      }
    }
    for (Method method : on.getClass().getMethods()) {
      if (fits(method, name, arguments)) return invoke(method, on, arguments);
    }
    throw new IllegalStateException("this version has no " + on.getClass().getName() + "." + name);
  }

  /** Calls a static method. */
  static Object callStatic(Class<?> type, String name, Object... arguments) {
    for (Method method : type.getMethods()) {
      if (fits(method, name, arguments)) return invoke(method, null, arguments);
    }
    throw new IllegalStateException("this version has no " + type.getName() + "." + name);
  }

  /** A class that the loader of another object knows. */
  static Class<?> sibling(Object of, String name) {
    try {
      return Class.forName(name, true, of.getClass().getClassLoader());
    } catch (ClassNotFoundException error) {
      throw new IllegalStateException("this version has no " + name, error);
    }
  }

  /** The single instance of a Scala object's class. */
  static Object companion(Class<?> type) {
    try {
      return type.getField("MODULE$").get(null);
    } catch (ReflectiveOperationException error) {
      throw new IllegalStateException("this version has another " + type.getName(), error);
    }
  }

  /** A field's value; the second result of a version without that field. */
  static Object field(Object of, String name, Object otherwise) {
    for (Class<?> type = of.getClass(); type != null; type = type.getSuperclass()) {
      try {
        Field field = type.getDeclaredField(name);
        field.setAccessible(true);
        return field.get(of);
      } catch (NoSuchFieldException error) {
        // perhaps a superclass has it
      } catch (IllegalAccessException error) {
        throw new IllegalStateException(error);
      }
    }
    return otherwise;
  }

  private static boolean fits(Method method, String name, Object[] arguments) {
    if (!method.getName().equals(name) || method.isBridge() || method.getParameterCount() != arguments.length) return false;
    Class<?>[] types = method.getParameterTypes();
    for (int i = 0; i < types.length; i++) {
      if (arguments[i] != null && !types[i].isPrimitive() && !types[i].isInstance(arguments[i])) return false;
    }
    return true;
  }

  private static Object invoke(Method method, Object on, Object[] arguments) {
    String name = method.getDeclaringClass().getName() + "." + method.getName();
    try {
      method.setAccessible(true);
      return method.invoke(on, arguments);
    } catch (InvocationTargetException error) {
      throw new IllegalStateException(name + ": " + error.getCause(), error.getCause());
    } catch (ReflectiveOperationException error) {
      throw new IllegalStateException(name, error);
    }
  }
}

package io.esskipping.helper;

/** Background threads that do not keep the JVM alive. */
final class Threads {
  private Threads() {}

  static Thread start(String name, Runnable work) {
    Thread thread = new Thread(work, name);
    thread.setDaemon(true);
    thread.start();
    return thread;
  }
}

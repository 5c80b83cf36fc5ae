package slow;

import java.io.EOFException;
import java.io.IOException;
import java.net.URI;
import java.util.concurrent.atomic.AtomicLong;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FSDataInputStream;
import org.apache.hadoop.fs.FSDataOutputStream;
import org.apache.hadoop.fs.FSInputStream;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.RawLocalFileSystem;
import org.apache.hadoop.fs.permission.FsPermission;
import org.apache.hadoop.util.Progressable;

/**
 * The local disk with an object store's latency: each request waits, each connection has a bandwidth, and requests and
 * bytes are counted.
 *
 * <p>A read is one GET from where it begins to where the reader stops or jumps. As in Hadoop's S3 client, a jump ahead
 * of at most 64 KiB reads on over the gap; any other jump is a GET of its own. A listing is a request for each thousand
 * names, a status is one request, and so is a file that is written.
 */
public final class SlowFileSystem extends RawLocalFileSystem {
  private static final URI NAME = URI.create("slow:///");
  private static final long READ_AHEAD = 64 * 1024;
  private static final int NAMES_PER_LISTING = 1_000;

  private static final AtomicLong GETS = new AtomicLong();
  private static final AtomicLong OTHERS = new AtomicLong();
  private static final AtomicLong BYTES = new AtomicLong();
  private static volatile long waitMillis = 0;
  private static volatile long bytesPerMilli = Long.MAX_VALUE;

  /** Sets the wait of each request, and the bandwidth of each connection (0: without limit). */
  public static void configure(long millis, long bytesPerSecond) {
    waitMillis = millis;
    bytesPerMilli = bytesPerSecond == 0 ? Long.MAX_VALUE : Math.max(1, bytesPerSecond / 1_000);
  }

  /** GET requests so far. */
  public static long gets() {
    return GETS.get();
  }

  /** Requests so far that list, ask for a status, or write. */
  public static long others() {
    return OTHERS.get();
  }

  /** Bytes that GET requests brought so far. */
  public static long bytes() {
    return BYTES.get();
  }

  @Override
  public URI getUri() {
    return NAME;
  }

  @Override
  public String getScheme() {
    return NAME.getScheme();
  }

  @Override
  public void initialize(URI uri, Configuration conf) throws IOException {
    super.initialize(NAME, conf);
  }

  @Override
  public FSDataInputStream open(Path path, int bufferSize) throws IOException {
    return new FSDataInputStream(new Connection(super.open(path, bufferSize), pathToFile(path).length()));
  }

  @Override
  public FileStatus getFileStatus(Path path) throws IOException {
    request(OTHERS);
    return super.getFileStatus(path);
  }

  @Override
  public FileStatus[] listStatus(Path path) throws IOException {
    FileStatus[] found = super.listStatus(path);
    for (int listed = 0; listed == 0 || listed < found.length; listed += NAMES_PER_LISTING) {
      request(OTHERS);
    }
    return found;
  }

  @Override
  public FSDataOutputStream create(
      Path path,
      FsPermission permission,
      boolean overwrite,
      int bufferSize,
      short replication,
      long blockSize,
      Progressable progress)
      throws IOException {
    request(OTHERS);
    return super.create(path, permission, overwrite, bufferSize, replication, blockSize, progress);
  }

  private static void request(AtomicLong counter) {
    counter.incrementAndGet();
    sleep(waitMillis);
  }

  private static void sleep(long millis) {
    if (millis > 0) {
      try {
        Thread.sleep(millis);
      } catch (InterruptedException error) {
        Thread.currentThread().interrupt();
      }
    }
  }

  /** An open file: a connection at a time, from where it was opened onwards. */
  private static final class Connection extends FSInputStream {
    private final FSDataInputStream file;
    private final long length;
    private long wanted = 0;
    private long at = -1;
    private long unpaid = 0;

    Connection(FSDataInputStream file, long length) {
      this.file = file;
      this.length = length;
    }

    @Override
    public synchronized void seek(long position) throws IOException {
      if (position < 0 || position > length) {
        throw new EOFException("position " + position + " of " + length);
      }
      wanted = position;
    }

    @Override
    public synchronized long getPos() {
      return wanted;
    }

    @Override
    public boolean seekToNewSource(long position) {
      return false;
    }

    @Override
    public synchronized int read() throws IOException {
      byte[] one = new byte[1];
      return read(one, 0, 1) < 0 ? -1 : one[0] & 0xff;
    }

    @Override
    public synchronized int read(byte[] buffer, int offset, int count) throws IOException {
      if (count == 0) {
        return 0;
      }
      if (wanted >= length) {
        return -1;
      }
      if (at < 0 || wanted < at || wanted - at > READ_AHEAD) {
        request(GETS);
      } else {
        transferred(wanted - at);
      }
      file.seek(wanted);
      int read = file.read(buffer, offset, count);
      if (read > 0) {
        wanted += read;
        transferred(read);
      }
      at = wanted;
      return read;
    }

    @Override
    public synchronized int available() {
      return (int) Math.min(Integer.MAX_VALUE, length - wanted);
    }

    @Override
    public void close() throws IOException {
      file.close();
    }

    private void transferred(long count) {
      BYTES.addAndGet(count);
      unpaid += count;
      long millis = unpaid / bytesPerMilli;
      unpaid -= millis * bytesPerMilli;
      sleep(millis);
    }
  }
}

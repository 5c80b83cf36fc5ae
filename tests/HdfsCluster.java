import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.net.URLDecoder;
import java.net.URLEncoder;
import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.Map;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FSDataOutputStream;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.permission.FsPermission;
import org.apache.hadoop.hdfs.DistributedFileSystem;
import org.apache.hadoop.hdfs.MiniDFSCluster;

/**
 * A name node and a data node in this process, started by tests/hdfs_cluster.py.
 *
 * <p>Commands come one a line on standard input, their words separated by spaces and encoded as in URLs. The answer is
 * a line: {@code ok} and what was asked for, or {@code error} and the message. The end of the input ends the process.
 */
public final class HdfsCluster {
    private final MiniDFSCluster cluster;
    private final Map<String, FSDataOutputStream> open = new HashMap<>();

    private HdfsCluster(MiniDFSCluster cluster) {
        this.cluster = cluster;
    }

    public static void main(String[] arguments) throws Exception {
        PrintStream replies = System.out;
        System.setOut(System.err);
        Configuration conf = new Configuration();
        conf.set("hdfs.minidfs.basedir", arguments[0]);
        conf.setBoolean("dfs.permissions.enabled", true);
        conf.setLong("dfs.namenode.fs-limits.min-block-size", 512); // a quota counts a block of full size for each writer
        MiniDFSCluster cluster = new MiniDFSCluster.Builder(conf).numDataNodes(1).build();
        cluster.waitActive();
        cluster.getFileSystem().setPermission(new Path("/"), new FsPermission((short) 0777));
        HdfsCluster here = new HdfsCluster(cluster);
        replies.println("ok " + cluster.getURI());
        replies.flush();
        BufferedReader commands = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = commands.readLine(); line != null; line = commands.readLine()) {
            String[] words = line.split(" ");
            for (int i = 0; i < words.length; i++) {
                words[i] = URLDecoder.decode(words[i], StandardCharsets.UTF_8);
            }
            String reply;
            try {
                reply = "ok " + encoded(here.answer(words));
            } catch (Exception failure) {
                reply = "error " + encoded(failure.toString());
            }
            replies.println(reply);
            replies.flush();
        }
        Runtime.getRuntime().halt(0);
    }

    private static String encoded(String text) {
        return URLEncoder.encode(text, StandardCharsets.UTF_8);
    }

    private void send(String[] words) throws Exception {
        open.get(words[1]).write(words[2].getBytes(StandardCharsets.UTF_8));
    }

    private String answer(String[] words) throws Exception {
        DistributedFileSystem files = cluster.getFileSystem();
        Path path = words.length > 1 ? new Path(words[1]) : null;
        switch (words[0]) {
            case "mkdir":
                files.mkdirs(path);
                files.setPermission(path, new FsPermission((short) 0777));
                return "";
            case "chmod":
                files.setPermission(path, new FsPermission(Short.parseShort(words[2], 8)));
                return "";
            case "quota":
                files.setQuota(path, Long.parseLong(words[2]), Long.parseLong(words[3]));
                return "";
            case "create":
                open.put(words[1], files.create(path, false));
                return "";
            case "append":
                open.put(words[1], files.append(path));
                return "";
            case "write": // what is written can be read at once, and the name node knows nothing of it
                send(words);
                open.get(words[1]).hflush();
                return "";
            case "send": // what fills packets of 64 kB reaches the data node, unflushed
                send(words);
                return "";
            case "close":
                open.remove(words[1]).close();
                return "";
            case "times":
                files.setTimes(path, Long.parseLong(words[2]), -1);
                return "";
            case "status":
                FileStatus status = files.getFileStatus(path);
                return status.getLen() + " " + status.getModificationTime() + " " + files.isFileClosed(path);
            case "restart":
                cluster.restartNameNode(true);
                return "";
            default:
                throw new IllegalArgumentException("unknown command " + words[0]);
        }
    }
}
